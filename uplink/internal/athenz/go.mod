module github.com/AthenZ/athenz

go 1.25.0
