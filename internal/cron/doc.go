// Package cron says when a cron entry is due. It is arithmetic only: no clock, no goroutine, no I/O. Two processes that
// ask the same question get the same answer, as long as their time zone data agree.
//
//	parse.go    text to Schedule: five fields, macros, @every
//	field.go    one field: lists, ranges, steps, names
//	date.go     a calendar without zones: which minutes match, how many
//	stretch.go  a zone as a row of stretches of constant offset
//	ticks.go    what is due in a stretch, and what in the jump before it
//	cron.go     Schedule: Next, All, Last
//
// # The fields
//
// Minute (0 to 59), hour (0 to 23), day of month (1 to 31), month (1 to 12 or JAN to DEC), day of week (0 to 7 or SUN to
// SAT; 0 and 7 are Sunday), separated by spaces. A field is a list of "*", "a", "a-b", each optionally with a step:
// "*/n", "a-b/n", and "a/n" for from a to the end of the field. The step may be as large as the field has values. Ranges
// do not wrap around, except that SUN ends a range of days of the week as the seventh day: "FRI-SUN". A "?" that stands
// alone in one of the day fields is "*".
//
// Day of month and day of week: when one of them starts with "*" or is "?", a day must match both. When neither does, it
// is enough to match one, as in every cron since Vixie's: "0 0 13 * FRI" is each 13th and each Friday. That the first
// character decides makes "*/2" a "*" here; it is Vixie's rule, too.
//
// # When clocks change
//
// An entry has fixed times when neither its minute nor its hour field starts with "*". It is due once for each of its
// times, at the first instant at which the clock on the wall shows that time or has jumped past it. So a time that a
// jump leaves out is due right after the jump, several such times together are due once, a day that a zone leaves out is
// made up for at the start of the next, and of an hour that comes twice only the first counts.
//
// All other entries follow real time: they are due whenever the clock shows a matching minute. "0 * * * *" and
// "*/10 * * * *" go on through an hour that comes twice, and have nothing to do in one that does not come. Mind that
// "*/10 2 * * *" is of this kind.
//
// "@every 90s" knows no zone: it is due when the seconds since 1970-01-01T00:00:00Z are a multiple of the duration.
//
// # What this does not promise
//
// The rules of zones come from the machine: a program for images without zone data imports time/tzdata, and processes
// with zone data of different years disagree about days on which a government has changed its mind. With time.Local as
// the zone they disagree anyway. No zone is expected to jump by more than two days. There are no ticks before the year 1
// and after the year 9999, and no leap seconds. There are no seconds fields and none of the letters L, W and #.
package cron
