package dev.nereid.scheduler.instance;

import dev.nereid.api.InferenceException;
import dev.nereid.api.statistics.FailureReason;
import dev.nereid.scheduler.batch.ExecutionBatch;
import dev.nereid.scheduler.batch.ExecutionScope;
import dev.nereid.scheduler.memory.InputStaging;
import dev.nereid.scheduler.queue.InstanceHandle;
import dev.nereid.scheduler.request.Executable;
import dev.nereid.scheduler.request.RequestDrain;
import dev.nereid.scheduler.request.Rescheduler;
import dev.nereid.scheduler.request.ResponseEvent;
import dev.nereid.scheduler.request.ScheduledRequest;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;

/** The requests that an instance took and has not executed. Confined to the thread that runs the instance. */
final class TakenRequests {
    private final InstanceHandle handle;
    private final List<Executable> taken;

    TakenRequests(InstanceHandle handle) {
        this.handle = handle;
        this.taken = handle.taken();
    }

    /** Counts requests, even without a client, as users of the instance: a sender of theirs may outlive the batch. */
    void use(RequestDrain users) {
        users.register(taken.size()); // before the requests are marked, whose end is counted from then on
        for (int i = 0; i < taken.size(); i++) {
            if (!taken.get(i).request().usedBy(users)) {
                users.deregister();
            }
        }
    }

    /** Returns whether there is one request alone, and it uses memory of its client. */
    boolean isOneInClientMemory() {
        return taken.size() == 1 && taken.getFirst().request().usesClientMemory();
    }

    /**
     * Moves inputs to memory that the instance accepts. Requests that completed because that failed are replaced by null
     * requests, or removed if their source has none.
     *
     * @param inPlace whether the execution works in memory of the client
     */
    void stageInputs(InputStaging staging, boolean inPlace) {
        List<Failed> failed = null;
        Executable like = null;
        for (int i = taken.size() - 1; i >= 0; i--) {
            Executable inputs = taken.get(i);
            if (!inputs.request().stageInputs(staging, inPlace)) {
                taken.remove(i);
                notExecuted(inputs);
                failed = failed == null ? new ArrayList<>() : failed;
                failed.add(new Failed(i, inputs));
            } else if (!inputs.isNull()) {
                like = inputs;
            }
        }
        if (failed != null && like != null) {
            replace(failed, like);
        }
    }

    /** Fills the places of failed requests; the last of them comes first. */
    private void replace(List<Failed> failed, Executable like) {
        for (int i = failed.size() - 1; i >= 0; i--) {
            Failed one = failed.get(i);
            Executable replacement = one.inputs.inPlace(like);
            if (replacement != null) {
                taken.add(one.place, replacement);
            }
        }
    }

    /** A request that failed before its execution, and its place in the batch. */
    private record Failed(int place, Executable inputs) {}

    /** Returns whether there is a request of a client; ends null requests without one. */
    boolean hasClients() {
        for (int i = 0; i < taken.size(); i++) {
            if (!taken.get(i).isNull()) {
                return true;
            }
        }
        while (!taken.isEmpty()) {
            complete(taken.removeLast(), ResponseEvent.END);
        }
        return false;
    }

    ExecutionBatch removeAll(ExecutionScope scope) {
        ExecutionBatch batch = new ExecutionBatch(scope, taken, handle.rescheduler());
        taken.clear();
        return batch;
    }

    void fail(Function<ScheduledRequest, InferenceException> error) {
        try {
            while (!taken.isEmpty()) {
                Executable inputs = taken.removeLast();
                complete(inputs, new ResponseEvent.Failure(error.apply(inputs.request()), FailureReason.OTHER));
            }
        } finally {
            if (!taken.isEmpty()) { // one of them failed
                fail(error);
            }
        }
    }

    private void complete(Executable inputs, ResponseEvent event) {
        ScheduledRequest request = inputs.request();
        try {
            request.complete(event);
            request.endExecutions(true);
        } finally {
            notExecuted(inputs);
        }
    }

    /** Reports to the source that an execution has ended before its backend. */
    private void notExecuted(Executable inputs) {
        Runnable release = inputs.released(false, null);
        if (release != null) {
            release.run();
        }
        Rescheduler rescheduler = handle.rescheduler();
        if (rescheduler != null && !inputs.isNull()) {
            rescheduler.reschedule(1, List.of());
        }
    }
}
