package k8s

import (
	"context"
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// podPatience is how long a registration may wait for the annotation of the pod, which nothing depends on.
const podPatience = time.Second

// showOnPod annotates the pod with the worker that runs in it, unless it is annotated so already.
func (s *Store) showOnPod(ctx context.Context, id, state string) {
	show := [2]string{id, state}
	if s.opts.PodName == "" || !s.changesPod(func(shown [2]string) bool { return shown != show }) {
		return
	}
	if s.patchPod(ctx, &id, &state) {
		s.setShown(show)
	}
}

// clearPod removes the annotations when the worker that they name has stopped.
func (s *Store) clearPod(ctx context.Context, id string) {
	if s.opts.PodName == "" || !s.changesPod(func(shown [2]string) bool { return shown[0] == id }) {
		return
	}
	if s.patchPod(ctx, nil, nil) {
		s.setShown([2]string{})
	}
}

func (s *Store) changesPod(f func(shown [2]string) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return f(s.shown)
}

func (s *Store) setShown(show [2]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown = show
}

// patchPod sets the annotations, or removes them where nil. A merge patch touches no other annotation, and needs no
// permission to read.
func (s *Store) patchPod(ctx context.Context, id, state *string) bool {
	ctx, cancel := context.WithTimeout(ctx, podPatience)
	defer cancel()
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{podIDAnnotation: id, podStateAnnotation: state}},
	})
	if err == nil {
		_, err = s.client.CoreV1().Pods(s.namespace).Patch(ctx, s.opts.PodName, types.MergePatchType, patch,
			metav1.PatchOptions{FieldManager: updateOptions.FieldManager})
	}
	if err != nil {
		s.opts.Logger.Warn("k8s: could not annotate the pod", "pod", s.opts.PodName, "error", err)
	}
	return err == nil
}
