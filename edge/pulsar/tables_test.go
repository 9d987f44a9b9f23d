package pulsar

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// tableLines are the lines of a table in testdata: what each is about, and the words
// behind that.
func tableLines(t *testing.T, name string) map[string][]string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string][]string{}
	for line := range strings.Lines(string(raw)) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		if _, again := lines[words[0]]; again {
			t.Errorf("%s: %s stands there twice", name, words[0])
		}
		lines[words[0]] = words[1:]
	}
	return lines
}

// testNames are the tests of the packages that the tables speak of.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, pattern := range []string{"*_test.go", "../*_test.go", "../admin/*_test.go", "../../uplink/*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, err)
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(raw), -1) {
				names[m[1]] = true
			}
		}
	}
	return names
}

// Every trap has a test with its number, or waits for a stated reason, and every test
// with a number stands in its line.
func TestEveryTrapHasItsTest(t *testing.T) {
	const traps = 90
	lines, names := tableLines(t, "traps.txt"), testNames(t)
	if len(lines) != traps {
		t.Errorf("%d traps, want %d", len(lines), traps)
	}
	for n := 1; n <= traps; n++ {
		number := strconv.Itoa(n)
		words := lines[number]
		if len(words) < 3 {
			t.Errorf("trap %d: %q says too little", n, words)
			continue
		}
		if words[0] == "waits" {
			continue
		}
		numbered := false
		for _, test := range words {
			if test == "|" {
				break
			}
			if !names[test] {
				t.Errorf("trap %d: there is no %s", n, test)
			}
			numbered = numbered || hasNumber(test, number)
		}
		if !numbered {
			t.Errorf("trap %d: no test has its number", n)
		}
	}
	for name := range names {
		for n := range numbersOf(name) {
			if line := strings.Join(lines[n], " "); !strings.Contains(line+" ", name+" ") {
				t.Errorf("%s is not in the line of trap %s", name, n)
			}
		}
	}
}

// numbersOf are the numbers of TestTrap1And2….
func numbersOf(test string) map[string]bool {
	m := regexp.MustCompile(`^TestTrap(\d+(?:And\d+)*)`).FindStringSubmatch(test)
	if m == nil {
		return nil
	}
	numbers := map[string]bool{}
	for _, n := range strings.Split(m[1], "And") {
		numbers[n] = true
	}
	return numbers
}

func hasNumber(test, number string) bool { return numbersOf(test)[number] }

// Every field case of the groups that concern this broker's protocol has tests with its code.
func TestEveryFieldCaseHasItsTest(t *testing.T) {
	lines, names := tableLines(t, "field.txt"), testNames(t)
	for group, last := range map[string]int{"SH": 11, "BI": 9, "SK": 9, "PT": 7, "DD": 7} {
		for n := 1; n <= last; n += 2 {
			digits := strconv.Itoa(100 + n)[1:]
			tests, coded := lines[group+"-"+digits], false
			for _, test := range tests {
				if !names[test] {
					t.Errorf("%s-%s: there is no %s", group, digits, test)
				}
				coded = coded || strings.Contains(test, group+digits)
			}
			if !coded {
				t.Errorf("%s-%s: no test has its code: %q", group, digits, tests)
			}
		}
	}
}
