package dispatch

import (
	"testing"
	"time"
)

func TestFilterMatches(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	tried := &TaskInfo{
		Task: Task{URL: "https://user@Hooks.Example.com:8443/a?b=c"},
		Progress: Progress{Attempts: 2, FirstAttempt: began.Add(-time.Hour), LastAttempt: began, History: []AttemptRecord{
			{Number: 1, ErrorKind: KindDNS}, {Number: 2, ErrorKind: KindTimeout},
		}},
	}
	fresh := &TaskInfo{Task: Task{Kind: "k"}}
	for name, c := range map[string]struct {
		task   *TaskInfo
		filter Filter
		want   bool
	}{
		"all":                            {tried, Filter{}, true},
		"all, never tried":               {fresh, Filter{}, true},
		"kind":                           {fresh, Filter{Kind: "k"}, true},
		"another kind":                   {fresh, Filter{Kind: "K"}, false},
		"kind of a URL":                  {tried, Filter{Kind: "k"}, false},
		"host":                           {tried, Filter{Host: "hooks.example.com"}, true},
		"host in capitals":               {tried, Filter{Host: "HOOKS.EXAMPLE.COM"}, true},
		"part of a host":                 {tried, Filter{Host: "example.com"}, false},
		"host of a handler's":            {fresh, Filter{Host: "hooks.example.com"}, false},
		"IPv4":                           {&TaskInfo{Task: Task{URL: "http://10.0.0.1:80/"}}, Filter{Host: "10.0.0.1"}, true},
		"IPv6":                           {&TaskInfo{Task: Task{URL: "http://[FD00::1]:80/"}}, Filter{Host: "fd00::1"}, true},
		"a URL that is none":             {&TaskInfo{Task: Task{URL: "http://[::"}}, Filter{Host: "a"}, false},
		"last error":                     {tried, Filter{ErrorKind: KindTimeout}, true},
		"an error before":                {tried, Filter{ErrorKind: KindDNS}, false},
		"an error that nothing is":       {tried, Filter{ErrorKind: "none"}, false},
		"error of none":                  {fresh, Filter{ErrorKind: KindTimeout}, false},
		"since then":                     {tried, Filter{Since: began}, true},
		"since a moment later":           {tried, Filter{Since: began.Add(time.Millisecond)}, false},
		"until then":                     {tried, Filter{Until: began}, false},
		"until a moment later":           {tried, Filter{Until: began.Add(time.Millisecond)}, true},
		"between":                        {tried, Filter{Since: began, Until: began.Add(time.Millisecond)}, true},
		"in no time":                     {tried, Filter{Since: began, Until: began}, false},
		"since, never tried":             {fresh, Filter{Since: began}, false},
		"until, never tried":             {fresh, Filter{Until: began}, false},
		"all of it":                      {tried, Filter{Host: "hooks.example.com", ErrorKind: KindTimeout, Since: began}, true},
		"all of it but one":              {tried, Filter{Host: "hooks.example.com", ErrorKind: KindDNS, Since: began}, false},
		"all of it but one, another one": {tried, Filter{Kind: "k", Host: "hooks.example.com", ErrorKind: KindTimeout}, false},
	} {
		if got := c.filter.matches(c.task); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestFilterIsChecked(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		filter Filter
		field  string
	}{
		{Filter{}, ""},
		{Filter{Since: now, Until: now}, ""},
		{Filter{Since: now}, ""},
		{Filter{Until: now}, ""},
		{Filter{ErrorKind: "of a later version", Host: "fd00::1", Kind: "k", States: allStates}, ""},
		{Filter{Since: now.Add(1), Until: now}, "Filter.Since"},
		{Filter{States: []TaskState{"lost"}}, "Filter.States"},
		{Filter{Host: "https://example.com"}, "Filter.Host"},
		{Filter{Host: "example.com:443"}, "Filter.Host"},
		{Filter{Host: "user@example.com"}, "Filter.Host"},
		{Filter{Host: "[fd00::1]"}, "Filter.Host"},
	} {
		if err := c.filter.validate("q"); c.field != "" {
			requireField(t, err, c.field)
		} else if err != nil {
			t.Errorf("%+v: %v", c.filter, err)
		}
	}
}
