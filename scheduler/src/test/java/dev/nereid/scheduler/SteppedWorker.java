package dev.nereid.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.scheduler.SharedResources.Need;
import dev.nereid.scheduler.instance.Instance;
import dev.nereid.scheduler.instance.InstanceWorker;
import dev.nereid.scheduler.rate.ExecutionLimiter;
import dev.nereid.spi.Batch;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * A worker that runs step by step. It ends as in a server: on its own thread, which closes the instances when no
 * request uses them any more. That thread either sleeps or has ended whenever the test continues, so that tests are
 * deterministic. Confined except for that thread.
 */
public final class SteppedWorker {
    private final InstanceWorker worker;
    private final List<FakeInstance> instances = new ArrayList<>();
    private final List<Integer> executed = new ArrayList<>();
    private @Nullable Thread thread;
    private BooleanSupplier isUnused = () -> false;
    private boolean isInside;
    private int executions;

    /** The behavior of an instance with a batch. */
    public interface Execution {
        void execute(SteppedWorker worker, Need need, Batch batch);
    }

    /** Registers with the queue of a scheduler, with one instance for each need. */
    SteppedWorker(SteppedScheduler scheduler, ExecutionLimiter limiter, List<Need> needs, Execution execution) {
        List<Instance> slots = new ArrayList<>();
        for (Need need : needs) {
            FakeInstance instance = new FakeInstance(batch -> execution.execute(this, need, batch));
            instances.add(instance);
            slots.add(SteppedScheduler.slot("i" + slots.size(), instance, need.profile()));
        }
        worker = scheduler.add(limiter, slots);
    }

    /** Returns whether it may run a step. */
    public boolean isFree() {
        return !isInside && !worker.isRetired();
    }

    public boolean isRetired() {
        return worker.isRetired();
    }

    /** Returns whether it is retired, and its thread has not seen that. */
    public boolean isToLeave() {
        return worker.isRetired() && !isInside && thread == null;
    }

    public boolean step() {
        isInside = true;
        try {
            return worker.step();
        } finally {
            isInside = false;
        }
    }

    /** Records an execution that begins. */
    void begin(Batch batch) {
        assertThat(worker.isRetired()).as("executes after it was retired").isFalse();
        batch.requests().forEach(request -> executed.add(Integer.valueOf(request.id())));
        executions++;
    }

    /** Records an execution that has ended. */
    public void end() {
        executions--;
    }

    /** Returns whether no execution is in progress. */
    boolean isIdle() {
        return executions == 0;
    }

    /** Returns the requests that it was given. */
    List<Integer> executed() {
        return executed;
    }

    public void retire() {
        worker.retire();
    }

    /**
     * Starts a thread that runs the worker to its end.
     *
     * @param unused says whether all is over for which the instances are still to be there
     */
    void leave(BooleanSupplier unused) {
        Thread own = Thread.ofPlatform().daemon(true).start(worker);
        thread = own;
        isUnused = unused;
        Threads.await(
                "asleep or over",
                () -> own.getState() == Thread.State.WAITING || own.getState() == Thread.State.TERMINATED);
    }

    /** The instances are closed when no request uses them any more, and not before. */
    void check() {
        Thread own = thread;
        boolean over = own != null && isUnused.getAsBoolean();
        if (own != null && over) {
            assertThat(join(own)).as("the worker comes to its end").isTrue();
        }
        for (FakeInstance instance : instances) {
            assertThat(instance.isClosed()).as("closed").isEqualTo(over);
            assertThat(instance.violations()).isEmpty();
        }
    }

    private static boolean join(Thread thread) {
        try {
            return thread.join(Duration.ofSeconds(10));
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }
}
