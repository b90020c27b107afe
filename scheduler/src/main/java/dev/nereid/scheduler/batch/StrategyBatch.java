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
import org.jspecify.annotations.Nullable;

/**
 * A batch during its evaluation by the batching strategy. Confined to the thread that forms the batch, which calls the
 * rule without any lock. A user of the memory of its candidates until its end.
 *
 * <p>Whatever the rule throws counts as a no, and is reported; if it cannot even begin, it refuses all but the first.
 */
final class StrategyBatch {
    private final ModelScope model;
    private final List<ScheduledRequest> candidates;
    private final BiConsumer<String, Throwable> failed;
    private final Set<ScheduledRequest> included = new HashSet<>();
    private final List<QueuedRequestView> views = new ArrayList<>();
    private @Nullable ScheduledRequest refused;
    private @Nullable FormingBatch batch;

    /**
     * Becomes the user of the candidates that the caller was.
     *
     * @param candidates at least one request, in order, all of which fit one batch
     * @param failed told which method of the rule threw what
     */
    StrategyBatch(ModelScope model, List<ScheduledRequest> candidates, BiConsumer<String, Throwable> failed) {
        this.model = model;
        this.candidates = candidates;
        this.failed = failed;
    }

    /** Asks the rule about one candidate after the other, until it says no. */
    void evaluate(BatchingStrategy strategy) {
        try {
            batch = strategy.begin();
            if (batch == null) { // a plugin is not compiled with our checks
                failed.accept("begin", new IllegalStateException("begin: null (expected: a batch)"));
            }
        } catch (Throwable e) {
            failed.accept("begin", e);
        }
        for (ScheduledRequest candidate : candidates) {
            boolean in = batch != null && include(batch, candidate);
            if (!in && candidate != first()) {
                refused = candidate;
                return;
            }
            included.add(candidate);
        }
    }

    private boolean include(FormingBatch asked, ScheduledRequest candidate) {
        QueuedRequestView view = new QueuedRequestView(model, candidate);
        views.add(view);
        try {
            return asked.include(view);
        } catch (Throwable e) {
            failed.accept("include", e);
            return false;
        }
    }

    /** Returns the candidate that begins the batch, whatever the rule says of it. */
    ScheduledRequest first() {
        return candidates.getFirst();
    }

    /** Says whether it is known if a request is let in. */
    boolean hasEvaluated(ScheduledRequest request) {
        return request == refused || included.contains(request);
    }

    /** Says whether a request is let in. */
    boolean includes(ScheduledRequest request) {
        return included.contains(request);
    }

    /** Closes the batch, and gives the candidates back. */
    void end() {
        if (batch != null) {
            try {
                batch.close();
            } catch (Throwable e) {
                failed.accept("close", e);
            }
        }
        views.forEach(QueuedRequestView::close);
        candidates.forEach(ScheduledRequest::release);
    }
}
