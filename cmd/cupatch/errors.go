package main

import (
	"errors"
	"fmt"

	near "github.com/cupatch/cupatch/isa/nearest"
)

// An exitError ends the program with a status. With a nil err nothing is printed:
// what there was to say has been said.
type exitError struct {
	code int
	err  error
	hint string
}

func (x *exitError) Error() string {
	if x.err == nil {
		return fmt.Sprintf("exit status %d", x.code)
	}
	return x.err.Error()
}

func (x *exitError) Unwrap() error { return x.err }

// Hint returns the advice that goes with the error.
func (x *exitError) Hint() string { return x.hint }

// answerNo ends the program with status 1 and a message.
func answerNo(format string, args ...any) *exitError {
	return &exitError{code: 1, err: fmt.Errorf(format, args...)}
}

// usagef ends the program with status 2 and a message.
func usagef(format string, args ...any) *exitError {
	return &exitError{code: 2, err: fmt.Errorf(format, args...)}
}

// stop makes an error of one file end the walk over all of them.
func stop(err error) error {
	var x *exitError
	if errors.As(err, &x) {
		return err
	}
	return &exitError{code: 2, err: err, hint: hintOf(err)}
}

// silent ends the program with a status and no message.
func silent(code int) error {
	if code == 0 {
		return nil
	}
	return &exitError{code: code}
}

// worse returns the more serious of two exit statuses.
func worse(a, b int) int { return max(a, b) }

// hintOf returns the first hint in err's chain, or "".
func hintOf(err error) string {
	for err != nil {
		if h, ok := err.(interface{ Hint() string }); ok && h.Hint() != "" {
			return h.Hint()
		}
		err = errors.Unwrap(err)
	}
	return ""
}

// nearest returns the name closest to s, or "" when none is close.
func nearest(s string, names []string) string { return near.Name(s, names) }
