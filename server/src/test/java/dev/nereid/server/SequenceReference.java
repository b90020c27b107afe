package dev.nereid.server;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A reference for the promises of the server about the sequences of a model. The model is loaded again and again, one
 * step after the other. Each request that has a slot is answered at once. Confined.
 *
 * <p>A sequence stays on its generation; a start ends the one of the same id on earlier generations. At most two
 * generations drain: another load or unload ends the sequences of the oldest one.
 */
final class SequenceReference {
    /** How a request ends. */
    enum Outcome {
        /** It waits for a slot. */
        NONE,
        ANSWERED,
        CANCELLED,
        NOT_STARTED,
        NOT_LOADED
    }

    /** A request, and how it ends. */
    static final class Request {
        final long id;
        final boolean start;
        final boolean end;
        final float value;
        Outcome outcome = Outcome.NONE;
        float sum;
        int generation;

        Request(long id, boolean start, boolean end, float value) {
            this.id = id;
            this.start = start;
            this.end = end;
            this.value = value;
        }

        @Override
        public String toString() {
            return "request " + value + " of " + id + (start ? " START" : "") + (end ? " END" : "") + ": " + outcome
                    + (outcome == Outcome.ANSWERED ? " " + sum + " by generation " + generation : "");
        }
    }

    private static final class Live {
        final Deque<Request> waiting = new ArrayDeque<>();
        float sum;
        long idleSince;
        boolean hasSlot;
        boolean over;
    }

    private final class Generation {
        final int number;
        final Map<Long, Live> live = new LinkedHashMap<>();
        final Deque<Live> backlog = new ArrayDeque<>();
        int free = slots;

        Generation(int number) {
            this.number = number;
        }

        void add(Request request) {
            Live sequence = live.get(request.id);
            if (sequence == null && !request.start) {
                request.outcome = Outcome.NOT_STARTED;
                return;
            }
            if (sequence == null) {
                sequence = new Live();
                live.put(request.id, sequence);
                backlog.add(sequence);
            }
            sequence.waiting.add(request);
            if (request.end) {
                forget(request.id);
            }
            serve(sequence);
        }

        void forget(long id) {
            Live sequence = live.remove(id);
            if (sequence != null) {
                sequence.over = true;
                endIfDone(sequence);
            }
        }

        private void endIfDone(Live sequence) {
            if (sequence.over && sequence.waiting.isEmpty()) {
                backlog.remove(sequence);
                free += sequence.hasSlot ? 1 : 0;
                sequence.hasSlot = false;
                placeBacklog();
            }
        }

        private void placeBacklog() {
            while (free > 0 && !backlog.isEmpty()) {
                Live next = backlog.poll();
                next.hasSlot = true;
                free--;
                serve(next);
            }
        }

        private void serve(Live sequence) {
            placeBacklog();
            if (!sequence.hasSlot) {
                return;
            }
            for (Request request = sequence.waiting.poll(); request != null; request = sequence.waiting.poll()) {
                sequence.sum = (request.start ? 0 : sequence.sum) + request.value;
                request.sum = sequence.sum;
                request.generation = number;
                request.outcome = Outcome.ANSWERED;
            }
            sequence.idleSince = now;
            endIfDone(sequence);
        }

        /** Cancels a request that waits, and those behind it up to the next start. */
        void cancel(long id, Live sequence, Request cancelled) {
            List<Request> all = new ArrayList<>(sequence.waiting);
            int at = all.indexOf(cancelled);
            sequence.waiting.clear();
            sequence.waiting.addAll(all.subList(0, at));
            int next = at;
            do {
                all.get(next).outcome = Outcome.CANCELLED;
                next++;
            } while (next < all.size() && !all.get(next).start);
            sequence.waiting.addAll(all.subList(next, all.size()));
            if (next == all.size()) {
                live.remove(id, sequence);
                sequence.over = true;
                endIfDone(sequence);
            }
        }

        void endIdle() {
            for (Map.Entry<Long, Live> one : List.copyOf(live.entrySet())) {
                Live sequence = one.getValue();
                if (sequence.hasSlot && now - sequence.idleSince >= idle) {
                    forget(one.getKey());
                }
            }
        }

        /** Ends all sequences, after their requests. */
        void stop() {
            while (!live.isEmpty()) {
                for (Map.Entry<Long, Live> one : List.copyOf(live.entrySet())) {
                    if (one.getValue().hasSlot) {
                        forget(one.getKey());
                    }
                }
            }
        }
    }

    private final int slots;
    private final long idle;
    private final List<Generation> draining = new ArrayList<>();
    private @Nullable Generation serving;
    private long now;

    SequenceReference(int slots, long idle) {
        this.slots = slots;
        this.idle = idle;
    }

    void load(int number) {
        endOldest();
        if (serving != null) {
            draining.add(serving);
        }
        serving = new Generation(number);
        settle();
    }

    void unload() {
        endOldest();
        if (serving != null) {
            draining.add(serving);
            serving = null;
        }
        draining.forEach(Generation::stop);
        settle();
    }

    private void endOldest() {
        if (draining.size() >= 2) {
            draining.getFirst().stop();
        }
        settle();
    }

    private void settle() {
        draining.removeIf(one -> one.live.isEmpty());
    }

    boolean isLoaded() {
        return serving != null;
    }

    void add(Request request) {
        Generation target = serving;
        if (request.start && target != null) {
            draining.forEach(one -> one.forget(request.id));
        } else if (target != null && !target.live.containsKey(request.id)) {
            target = draining.reversed().stream()
                    .filter(one -> one.live.containsKey(request.id))
                    .findFirst()
                    .orElse(target);
        }
        if (target == null) {
            request.outcome = Outcome.NOT_LOADED;
        } else {
            target.add(request);
        }
        settle();
    }

    void cancel(Request request) {
        for (Generation one : all()) {
            for (Live sequence : List.copyOf(one.backlog)) {
                if (sequence.waiting.contains(request)) {
                    one.cancel(request.id, sequence, request);
                }
            }
        }
        settle();
    }

    void advance(long nanos) {
        now += nanos;
        all().forEach(Generation::endIdle);
        settle();
    }

    private List<Generation> all() {
        List<Generation> all = new ArrayList<>(draining);
        if (serving != null) {
            all.add(serving);
        }
        return all;
    }

    /** Returns the ids of the sequences to which requests may be added. */
    List<Long> ids() {
        return all().stream()
                .flatMap(one -> one.live.keySet().stream())
                .distinct()
                .toList();
    }

    long slotsUsed() {
        return all().stream().mapToLong(one -> slots - one.free).sum();
    }

    long backlog() {
        return all().stream().mapToLong(one -> one.backlog.size()).sum();
    }
}
