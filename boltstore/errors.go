package boltstore

import "errors"

// ErrLocked says that another process, or another store of this one, has the
// directory open.
var ErrLocked = errors.New("data directory is in use")

// ErrFormat says that the files were written by a version of the program whose
// format this one does not know. Nothing was changed.
var ErrFormat = errors.New("unknown store format")

// errDamaged marks bytes that are not what was written.
var errDamaged = errors.New("damaged")
