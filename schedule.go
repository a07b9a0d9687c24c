package dispatch

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// Schedule creates a cron entry or changes the one of its name: the new spec and task are in force from the next tick on.
// With a new spec or zone a tick that was due and not yet fired is dropped.
// Scheduling what is there already changes nothing; a paused entry stays paused, and one that SyncSchedules keeps stays
// with its owner. Whether the queue will take the task is seen at the tick: one that is refused is dropped, with a warning.
// The error is a *FieldError for bad input, or ErrStoreFull.
func (c *Client) Schedule(ctx context.Context, e Entry) error {
	return c.putEntry(ctx, "", e)
}

func (c *Client) putEntry(ctx context.Context, owner string, e Entry) error {
	e, err := e.normalize(c.clock.Now())
	if err != nil {
		return err
	}
	return c.acked.PutEntry(ctx, &EntryInfo{Entry: e, Owner: owner})
}

// SyncSchedules makes the entries those of an owner, such as "billing": it schedules them all, and deletes the owner's
// others, so that an entry which was removed from the program stops firing. Call it when a program starts, with all its
// entries. While an old and a new version of a program run side by side, the one that started last decides. The owner's
// name is 1 to 100 characters of [A-Za-z0-9_-]. An entry that another owner has, or that Schedule
// made, changes hands. Nothing is changed if any of the entries is bad.
func (c *Client) SyncSchedules(ctx context.Context, owner string, entries []Entry) error {
	if !entryNamePattern.MatchString(owner) {
		return fieldErrorf("SyncSchedules.owner", "%q does not match %s", clip(owner, 120), entryNamePattern)
	}
	kept := make(map[string]bool, len(entries))
	for i, e := range entries {
		if _, err := e.normalize(c.clock.Now()); err != nil {
			return within(fmt.Sprintf("SyncSchedules.entries[%d]", i), "Entry", err)
		}
		if kept[e.Name] {
			return fieldErrorf("SyncSchedules.entries", "has two of the name %q", e.Name)
		}
		kept[e.Name] = true
	}
	for _, e := range entries {
		if err := c.putEntry(ctx, owner, e); err != nil {
			return err
		}
	}
	for e, err := range c.Entries(ctx) {
		if err != nil {
			return err
		}
		if e.Owner != owner || kept[e.Name] {
			continue
		}
		if err := c.acked.DeleteEntry(ctx, e.Name, e.Revision); err != nil && !errors.Is(err, ErrEntryNotFound) {
			return err
		}
	}
	return nil
}

// PauseEntry keeps an entry from firing until ResumeEntry, or returns ErrEntryNotFound. Ticks that pass meanwhile are
// not made up for.
func (c *Client) PauseEntry(ctx context.Context, name string) error {
	return c.pauseEntry(ctx, name, true)
}

// ResumeEntry ends the pause of an entry, or returns ErrEntryNotFound.
func (c *Client) ResumeEntry(ctx context.Context, name string) error {
	return c.pauseEntry(ctx, name, false)
}

func (c *Client) pauseEntry(ctx context.Context, name string, paused bool) error {
	if err := validateEntryName(name); err != nil {
		return err
	}
	return named(c.acked.PauseEntry(ctx, name, paused), name)
}

// Entry returns a cron entry, or ErrEntryNotFound.
func (c *Client) Entry(ctx context.Context, name string) (*EntryInfo, error) {
	if err := validateEntryName(name); err != nil {
		return nil, err
	}
	e, err := c.store.Entry(ctx, name)
	return e, named(err, name)
}

// Entries lists all cron entries, in no order. An entry that exists during the whole listing is listed, perhaps more than
// once. After an error the listing ends.
func (c *Client) Entries(ctx context.Context) iter.Seq2[*EntryInfo, error] {
	return func(yield func(*EntryInfo, error) bool) {
		for cursor := uint64(0); ; {
			entries, next, err := c.store.Entries(ctx, cursor)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, e := range entries {
				if !yield(e, nil) {
					return
				}
			}
			if cursor = next; cursor == 0 {
				return
			}
		}
	}
}

// DeleteEntry removes a cron entry, or returns ErrEntryNotFound. Tasks that it has made stay.
func (c *Client) DeleteEntry(ctx context.Context, name string) error {
	if err := validateEntryName(name); err != nil {
		return err
	}
	return named(c.acked.DeleteEntry(ctx, name, 0), name)
}

// RunEntry enqueues an entry's task once, now, beside its ticks and whether it is paused or not. It returns the ID of the
// task, which is a generated one, or ErrEntryNotFound, and otherwise what Enqueue does.
func (c *Client) RunEntry(ctx context.Context, name string) (TaskID, error) {
	e, err := c.Entry(ctx, name)
	if err != nil {
		return "", err
	}
	return c.Enqueue(ctx, e.Task)
}
