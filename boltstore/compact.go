package boltstore

func (s *Store) compactStep() bool { return false }
