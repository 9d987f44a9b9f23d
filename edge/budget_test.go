package edge

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// used returns what is taken of the publish share.
func used(b *Budget) int64 {
	n, _ := b.Usage(SharePublish)
	return n
}

func mustTake(t *testing.T, b *Budget, n int64) Grant {
	t.Helper()
	g, err := b.Take(t.Context(), SharePublish, n)
	if err != nil || g.Bytes() != n {
		t.Fatalf("take %d: %d, %v", n, g.Bytes(), err)
	}
	return g
}

func TestBudgetShares(t *testing.T) {
	b := NewBudget(5600)
	for s, want := range map[Share]int64{SharePublish: 1200, ShareRead: 1200, ShareSubscription: 600, ShareTail: 300, ShareUplink: 900} {
		if used, limit := b.Usage(s); used != 0 || limit != want {
			t.Errorf("share %d: %d of %d, want 0 of %d", s, used, limit, want)
		}
	}
	mustTake(t, b, 1200).Release()
	g := mustTake(t, b, 1000)
	if _, ok := b.TryTake(SharePublish, 201); ok {
		t.Error("more than is free was given")
	}
	if _, ok := b.TryTake(ShareRead, 1200); !ok {
		t.Error("another share is not free")
	}
	h, ok := b.TryTake(SharePublish, 200)
	if !ok || used(b) != 1200 {
		t.Errorf("the rest: %v, %d used", ok, used(b))
	}
	g.Release()
	h.Release()
	if used(b) != 0 {
		t.Errorf("%d used after all came back", used(b))
	}
	(Grant{}).Release()
}

func TestBudgetLargerThanTheShare(t *testing.T) {
	b := NewBudget(5600)
	g := mustTake(t, b, 5000)
	if _, ok := b.TryTake(SharePublish, 1); ok {
		t.Error("given beside an oversized one")
	}
	g.Release()
	small := mustTake(t, b, 1)
	if _, ok := b.TryTake(SharePublish, 5000); ok {
		t.Error("an oversized one was given beside another")
	}
	small.Release()
}

func TestGrantSplit(t *testing.T) {
	b := NewBudget(5600)
	g := mustTake(t, b, 1000)
	part := g.Split(300)
	if g.Bytes() != 700 || part.Bytes() != 300 || used(b) != 1000 {
		t.Errorf("%d and %d, %d used", g.Bytes(), part.Bytes(), used(b))
	}
	large := g.Split(900) // more than is left: overdrawn
	if g.Bytes() != 0 || large.Bytes() != 900 || used(b) != 1200 {
		t.Errorf("%d and %d, %d used", g.Bytes(), large.Bytes(), used(b))
	}
	g.Release()
	part.Release()
	large.Release()
	if used(b) != 0 {
		t.Errorf("%d used after all came back", used(b))
	}
	var none Grant
	if none.Split(5).Bytes() != 0 {
		t.Error("nothing was split into something")
	}
}

// The first in line is served first, also when a later one would fit.
func TestBudgetFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(5600)
		held := mustTake(t, b, 300)
		more := mustTake(t, b, 300)
		held.Join(mustTake(t, b, 300))
		held.Join(more)
		wait := func(n int64) chan Grant {
			got := make(chan Grant, 1)
			go func() { g, _ := b.Take(t.Context(), SharePublish, n); got <- g }()
			synctest.Wait()
			return got
		}
		first, second := wait(1100), wait(150)
		if len(first)+len(second) > 0 {
			t.Fatal("somebody overtook the large one, though no other is held")
		}
		if _, ok := b.TryTake(SharePublish, 1); ok {
			t.Fatal("TryTake overtook")
		}
		held.Release()
		synctest.Wait()
		if len(first) != 1 || len(second) != 0 || used(b) != 1100 {
			t.Fatalf("%d first and %d second served, %d used", len(first), len(second), used(b))
		}
		(<-first).Release()
		(<-second).Release()
		if used(b) != 0 {
			t.Errorf("%d used after all came back", used(b))
		}
	})
}

// Whoever gives up waiting lets those behind it go on, and leaves nothing taken.
func TestBudgetGivingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(5600)
		held := mustTake(t, b, 1000)
		ctx, cancel := context.WithCancel(t.Context())
		gaveUp := make(chan error, 1)
		go func() {
			_, err := b.Take(ctx, SharePublish, 1100)
			gaveUp <- err
		}()
		synctest.Wait()
		behind := make(chan Grant, 1)
		go func() { g, _ := b.Take(t.Context(), SharePublish, 200); behind <- g }()
		synctest.Wait()
		cancel()
		if err := <-gaveUp; !errors.Is(err, context.Canceled) {
			t.Errorf("the one who gave up got %v", err)
		}
		if g := <-behind; g.Bytes() != 200 || used(b) != 1200 {
			t.Errorf("the one behind got %d, %d used", g.Bytes(), used(b))
		} else {
			g.Release()
		}
		held.Release()
		if used(b) != 0 {
			t.Errorf("%d used after all came back", used(b))
		}
	})
}

// A grant that arrives together with the end of waiting is not lost.
func TestBudgetServedWhileGivingUp(t *testing.T) {
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			b := NewBudget(5600)
			held := mustTake(t, b, 1200)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				if g, err := b.Take(ctx, SharePublish, 1200); err == nil {
					g.Release()
				}
			}()
			synctest.Wait()
			go held.Release()
			go cancel()
			<-done
			synctest.Wait()
			if used(b) != 0 {
				t.Fatalf("%d used after all came back", used(b))
			}
		})
	}
}

// While a large grant is held, large wishes that wait do not keep small ones from what is
// left; they keep their own order, and when it is back nobody passes them any more.
func TestBudgetSmallPassLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(5600)
		wait := func(n int64) chan Grant {
			got := make(chan Grant, 1)
			go func() { g, _ := b.Take(t.Context(), SharePublish, n); got <- g }()
			synctest.Wait()
			return got
		}
		held := mustTake(t, b, 800)
		first, second, third := wait(700), wait(310), wait(200)
		if len(first)+len(second) > 0 || len(third) != 1 {
			t.Fatalf("%d, %d and %d served, want the small one", len(first), len(second), len(third))
		}
		small, ok := b.TryTake(SharePublish, 200)
		if !ok {
			t.Fatal("TryTake of a small one was refused")
		}
		if _, ok := b.TryTake(SharePublish, 301); ok {
			t.Fatal("TryTake of a large one overtook")
		}
		fourth := wait(100)
		if len(fourth) != 0 || !b.Contended(SharePublish) {
			t.Fatal("more than there is was given")
		}
		small.Release()
		if synctest.Wait(); len(fourth) != 1 {
			t.Fatal("what came back was not given to the small one")
		}
		part := held.Split(300)
		held.Release()
		if synctest.Wait(); len(first)+len(second) != 0 {
			t.Fatal("a large one was served too early")
		}
		part.Release()
		if synctest.Wait(); len(first)+len(second) != 0 {
			t.Fatal("a large one did not leave a quarter")
		}
		if _, ok := b.TryTake(SharePublish, 1); ok {
			t.Fatal("a small one passed a large one though no other was held")
		}
		(<-third).Release()
		if synctest.Wait(); len(first) != 1 || len(second) != 0 {
			t.Fatalf("%d and %d served, want the first large one", len(first), len(second))
		}
		(<-first).Release()
		(<-fourth).Release()
		(<-second).Release()
		if used(b) != 0 || b.share[SharePublish].large != 0 {
			t.Errorf("%d used, %d large, after all came back", used(b), b.share[SharePublish].large)
		}
	})
}

// Memory that was taken as small and as large counts as large once it is together.
func TestGrantJoin(t *testing.T) {
	b := NewBudget(5600)
	for _, sizes := range [][2]int64{{100, 500}, {500, 100}, {100, 100}, {0, 500}} {
		var g Grant
		for _, n := range sizes {
			if n > 0 {
				g.Join(mustTake(t, b, n))
			}
		}
		g.Join(Grant{})
		if g.Bytes() != sizes[0]+sizes[1] {
			t.Errorf("%v make %d", sizes, g.Bytes())
		}
		g.Release()
		if used(b) != 0 || b.share[SharePublish].large != 0 {
			t.Errorf("%v: %d used, %d large, after all came back", sizes, used(b), b.share[SharePublish].large)
		}
	}
}
