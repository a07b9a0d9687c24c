package main

import "errors"

const canLaunch = false // there is no redis-server for Windows

func launch() (url string, stop func(), err error) { return "", nil, errors.ErrUnsupported }
