package dev.nereid.scheduler;

import dev.nereid.spi.BatchingStrategy;
import dev.nereid.spi.FormingBatch;
import dev.nereid.spi.RequestView;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

/** A batching strategy whose decisions a test determines. It records its calls, and detects wrong ones. */
public final class FakeStrategy implements BatchingStrategy {
    /** The decision about a request. */
    public interface Rule {
        boolean include(RequestView request);
    }

    private final Rule rule;
    private final List<String> calls = new CopyOnWriteArrayList<>();
    private final List<String> violations = new CopyOnWriteArrayList<>();
    private final List<String> included = new CopyOnWriteArrayList<>();
    private final AtomicBoolean forming = new AtomicBoolean();
    private final AtomicInteger closed = new AtomicInteger();

    public FakeStrategy(Rule rule) {
        this.rule = rule;
    }

    @Override
    public FormingBatch begin() {
        calls.add("begin");
        included.clear();
        if (!forming.compareAndSet(false, true)) {
            violations.add("two batches at a time");
        }
        if (closed.get() > 0) {
            violations.add("used after its close");
        }
        return new Forming();
    }

    /** Returns the calls so far, and clears them. */
    public List<String> calls() {
        List<String> made = List.copyOf(calls);
        calls.clear();
        return made;
    }

    /** Records an event between the calls. */
    public void note(String what) {
        calls.add(what);
    }

    /** Returns the ids of the requests that it let into the batch that was formed last. */
    List<String> included() {
        return List.copyOf(included);
    }

    public List<String> violations() {
        return violations;
    }

    public boolean isForming() {
        return forming.get();
    }

    public int closed() {
        return closed.get();
    }

    @Override
    public void close() {
        calls.add("close strategy");
        if (forming.get()) {
            violations.add("closed while a batch is formed");
        }
        closed.incrementAndGet();
    }

    private final class Forming implements FormingBatch {
        private boolean over;

        @Override
        public boolean include(RequestView request) {
            calls.add("include " + request.id());
            if (over) {
                violations.add("called after its end");
            }
            try {
                boolean in = rule.include(request);
                if (in) {
                    included.add(request.id());
                }
                return in;
            } catch (AssertionError e) { // would only count as a no
                violations.add(e.toString());
                throw e;
            }
        }

        @Override
        public void close() {
            calls.add("close");
            if (over) {
                violations.add("ended twice");
            }
            over = true;
            forming.set(false);
        }
    }
}
