package code

func CutDot(s []byte) (head, tail []byte) {
	for i, c := range s {
		if c == '.' {
			return s[:i], s[i+1:]
		}
	}
	return s, nil
}
