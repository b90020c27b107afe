package dev.nereid.scheduler.instance;

import dev.nereid.scheduler.batch.ExecutionScope;
import dev.nereid.scheduler.queue.RequestQueue;
import java.util.ArrayList;
import java.util.List;

/**
 * Workers that start together, and their warm-up. Immutable but for what they do.
 *
 * @param workers one for each thread
 * @param warmup what each of them does first
 */
public record WorkerGroup(List<InstanceWorker> workers, Warmup warmup) {
    public WorkerGroup {
        workers = List.copyOf(workers);
    }

    /**
     * Makes a worker for each instance, or for each device that executions block; all have their seats at the queue
     * before the first one starts. If that fails, no seat is left.
     */
    public static WorkerGroup of(
            ExecutionScope scope,
            List<ManagedInstance> instances,
            boolean blocksDevice,
            RequestQueue queue,
            ShortExecutions executions,
            List<WarmupSample> samples) {
        List<DeviceInstances> seats = DeviceInstances.of(instances, blocksDevice);
        Warmup together = new Warmup(scope, samples, seats.size());
        List<InstanceWorker> workers = new ArrayList<>();
        try {
            for (DeviceInstances shared : seats) {
                InstanceWorker worker = new InstanceWorker(scope, shared, queue.batches(), executions, together);
                workers.add(worker);
                together.onFailure(worker::retire);
            }
            return new WorkerGroup(workers, together);
        } catch (RuntimeException | Error e) { // nobody will run those that have their seats
            workers.forEach(InstanceWorker::leaveQueue);
            throw e;
        }
    }

    /**
     * Starts the workers, and waits until all of them are warm; if that fails, until all of them are closed.
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
                threads.retire(workers::contains); // some may serve: an interrupt can come after the warm-up
                threads.end(workers::contains);
            }
        }
    }
}
