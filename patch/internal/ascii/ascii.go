package ascii

func Space(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func NameStart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
}

func Name(c byte) bool { return NameStart(c) || Digit(c) }

func Digit(c byte) bool { return c >= '0' && c <= '9' }
