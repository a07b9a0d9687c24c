package redisstore

import (
	"context"
	"time"
)

const (
	// repairPage is how many entries of a hash are read at once; they come with their values, and a record may have 1 MiB.
	repairPage = 20
	// repairSlack is what an attempt, whose lease has lost its end, may need beyond its timeout: until it starts, and to report.
	repairSlack = 5 * time.Second
)

// repair brings all entries of a queue in line that contradict each other, page by page, and returns how many tasks that were.
// Each step decides about a task from all that is known of it at that moment, so it may run beside everything else, and twice.
func (s *Store) repair(ctx context.Context, queue string) (repaired int64, err error) {
	k := s.queueKeys(queue)
	fix := func(ids []string) error {
		for len(ids) > 0 {
			part := ids[:min(len(ids), pageSize)]
			ids = ids[len(part):]
			keys := []string{k.due, k.leased, k.leases, k.tasks, k.state, k.done, k.dead, k.cancelled}
			v, err := s.run(ctx, evenUncertain, s.scripts.repair, keys, withIDs(part, s.now(), ms(repairSlack))...)
			if err != nil {
				return err
			}
			n, _ := v.(int64)
			repaired += n
		}
		return nil
	}
	for _, hash := range []string{k.leases, k.tasks, k.state} {
		for cursor := uint64(0); ; {
			ids, next, err := s.scanHash(ctx, hash, cursor)
			if err == nil {
				err = fix(ids)
			}
			if err != nil {
				return repaired, err
			}
			if cursor = next; cursor == 0 {
				break
			}
		}
	}
	for _, index := range []string{k.leased, k.due, k.done, k.dead, k.cancelled} {
		for cursor := ""; ; {
			ids, next, err := s.scanIndex(ctx, index, cursor)
			if err == nil {
				err = fix(ids)
			}
			if err != nil {
				return repaired, err
			}
			if cursor = next; cursor == "" {
				break
			}
		}
	}
	return repaired, nil
}

// scanHash reads one page of the fields of a hash. The cursor is 0 at both ends.
func (s *Store) scanHash(ctx context.Context, key string, cursor uint64) (fields []string, next uint64, err error) {
	var pairs []string
	err = s.persist(ctx, evenUncertain, func(ctx context.Context) error {
		var err error
		pairs, next, err = s.client.HScan(ctx, key, cursor, "", repairPage).Result()
		return err
	})
	for i := 0; i < len(pairs); i += 2 {
		fields = append(fields, pairs[i])
	}
	return fields, next, err
}
