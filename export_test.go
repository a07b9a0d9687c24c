package dispatch

// KnownQueues is how many queues the dispatcher remembers.
func (d *Dispatcher) KnownQueues() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.queues)
}
