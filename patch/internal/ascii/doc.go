// Package ascii tells the bytes of names, numbers and blanks apart.
package ascii
