package dev.nereid.scheduler.instance;

import dev.nereid.scheduler.batch.ExecutionScope;
import dev.nereid.scheduler.queue.WorkSource;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;

/**
 * Workers that start together, and their warm-up. Immutable except for the state of both.
 *
 * @param workers one for each thread
 * @param warmup runs first on each of the threads
 */
public record WorkerGroup(List<InstanceWorker> workers, Warmup warmup) {
    public WorkerGroup {
        workers = List.copyOf(workers);
    }

    /**
     * Creates a worker for each instance, or for each device that executions block. All are registered with their
     * source before the first one starts; if that fails, no worker is registered.
     *
     * @param sources returns a source of batches for each worker
     */
    public static WorkerGroup of(
            ExecutionScope scope,
            List<Instance> instances,
            ExecutionTraits traits,
            Supplier<? extends WorkSource> sources,
            DirectExecutionPolicy executions,
            List<Warmup.Sample> samples) {
        List<DeviceInstances> groups = DeviceInstances.of(instances, traits.blocksDevice());
        Warmup warmup = new Warmup(scope, samples, groups.size());
        List<InstanceWorker> workers = new ArrayList<>();
        try {
            for (DeviceInstances group : groups) {
                InstanceWorker worker =
                        new InstanceWorker(scope, group, sources.get(), executions, traits.maxDeferred(), warmup);
                workers.add(worker);
                warmup.onFailure(worker::retire);
            }
            return new WorkerGroup(workers, warmup);
        } catch (RuntimeException e) { // no thread runs the registered workers
            workers.forEach(InstanceWorker::leaveQueue);
            throw e;
        }
    }

    /**
     * Starts the workers, and waits until all of them are warm. If that fails, it waits until all of them are closed.
     *
     * @throws dev.nereid.api.InferenceException as {@link Warmup#await}
     * @throws InterruptedException if the calling thread is interrupted meanwhile
     */
    public void warmUp(InstanceThreads threads) throws InterruptedException {
        boolean warm = false;
        try {
            threads.start(workers, warmup);
            warmup.await();
            warm = true;
        } finally {
            if (!warm) {
                warmup.cancel();
                threads.retire(workers::contains); // some may serve: an interrupt can arrive after the warm-up
                threads.end(workers::contains);
            }
        }
    }
}
