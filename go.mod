module github.com/cupatch/cupatch

go 1.26.8
