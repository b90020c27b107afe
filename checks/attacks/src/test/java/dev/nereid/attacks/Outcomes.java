package dev.nereid.attacks;

import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.atomic.LongAdder;

/** Outcomes of many requests, counted by text. Safe for use by any thread. */
final class Outcomes {
    private static final int MAX_SAMPLES = 10;

    private final NavigableMap<String, LongAdder> counts = new ConcurrentSkipListMap<>();
    private final Set<String> refusals = new ConcurrentSkipListSet<>();
    private final Queue<String> wrong = new ConcurrentLinkedQueue<>();

    /** Counts a request that ended as it should. */
    void count(String kind, String outcome) {
        String text = kind + ": " + outcome.replaceAll("id: s\\d+|\\d{4,}", "N");
        counts.computeIfAbsent(text.substring(0, Math.min(text.length(), 200)), _ -> new LongAdder())
                .increment();
    }

    /** Counts a refusal for load: 503 or UNAVAILABLE. */
    void refused(String kind, String text) {
        count(kind, "UNAVAILABLE: " + text);
        if (refusals.size() < MAX_SAMPLES) {
            refusals.add(text.replaceAll("\\d+", "N")); // one of each kind
        }
    }

    /** Counts a violation. */
    void wrong(String kind, String text) {
        count(kind, "WRONG: " + text);
        if (wrong.size() < MAX_SAMPLES) {
            wrong.add(kind + ": " + text);
        }
    }

    Map<String, LongAdder> counts() {
        return counts;
    }

    Set<String> refusals() {
        return refusals;
    }

    List<String> wrong() {
        return List.copyOf(wrong);
    }
}
