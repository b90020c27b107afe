package dev.nereid.scheduler.batch;

import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.spi.BatchingStrategy;
import dev.nereid.spi.FormingBatch;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.BiConsumer;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * A batch during its evaluation by the batching strategy. Confined to the thread that forms the batch, which calls the
 * strategy without any lock. Holds references to the memory of its candidates until its end.
 *
 * <p>An exception of the strategy excludes the request, and is reported; if {@code begin} throws, all requests but the
 * first are excluded.
 */
final class StrategyBatch {
    private final ModelScope model;
    private final List<ScheduledRequest> candidates;
    private final BiConsumer<String, Throwable> failed;
    private final Set<ScheduledRequest> included = new HashSet<>();
    private final List<CandidateView> views = new ArrayList<>();
    private @Nullable ScheduledRequest excluded;
    private @Nullable FormingBatch batch;

    /**
     * Takes over the caller's references to the candidates.
     *
     * @param candidates at least one request, in order, all of which fit one batch
     * @param failed receives the method of the strategy that threw, and the exception
     */
    StrategyBatch(ModelScope model, List<ScheduledRequest> candidates, BiConsumer<String, Throwable> failed) {
        this.model = model;
        this.candidates = candidates;
        this.failed = failed;
    }

    /** Passes one candidate after the other to the strategy, until it excludes one. */
    void evaluate(BatchingStrategy strategy) {
        call("begin", () -> begin(strategy));
        for (ScheduledRequest candidate : candidates) {
            boolean in = batch != null && include(batch, candidate);
            if (!in && candidate != first()) {
                excluded = candidate;
                return;
            }
            included.add(candidate);
        }
    }

    private boolean begin(BatchingStrategy strategy) {
        batch = strategy.begin();
        if (batch == null) { // a plugin is not compiled with our checks
            throw new IllegalStateException("begin: null (expected: a batch)");
        }
        return true;
    }

    private boolean include(FormingBatch forming, ScheduledRequest candidate) {
        CandidateView view = new CandidateView(model, candidate);
        views.add(view);
        return call("include", () -> forming.include(view));
    }

    /** Calls a method of the strategy, and reports its exception; returns {@code false} after one. */
    private boolean call(String method, BooleanSupplier code) {
        try {
            return code.getAsBoolean();
        } catch (Throwable e) { // of the strategy
            failed.accept(method, e);
            return false;
        }
    }

    private static boolean close(FormingBatch formed) {
        formed.close();
        return true;
    }

    /** Returns the first candidate; the batch always includes it. */
    ScheduledRequest first() {
        return candidates.getFirst();
    }

    boolean hasEvaluated(ScheduledRequest request) {
        return request == excluded || included.contains(request);
    }

    boolean includes(ScheduledRequest request) {
        return included.contains(request);
    }

    /** Closes the batch, and releases the candidates. */
    void end() {
        FormingBatch formed = batch;
        if (formed != null) {
            call("close", () -> close(formed));
        }
        views.forEach(CandidateView::close);
        candidates.forEach(ScheduledRequest::release);
    }
}
