package dev.nereid.server.warmup;

import dev.nereid.api.InferenceException;
import dev.nereid.scheduler.InstanceControl;
import dev.nereid.scheduler.instance.Instance;
import dev.nereid.scheduler.instance.Warmup;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Tracks schedulers that are warming up, so that a shutdown can end their warm-ups. Safe for use by any thread.
 *
 * <p>No warm-up is missed: a thread that begins one adds it before it reads whether warm-ups are ended; {@link #end}
 * sets that before it reads which were added.
 */
public final class RunningWarmups {
    private final Set<InstanceControl> running = ConcurrentHashMap.newKeySet();
    private volatile boolean ended;

    /**
     * Waits until the first instances of a model are warm, or warm-ups are ended.
     *
     * @throws InferenceException as {@link InstanceControl#awaitWarm}
     */
    public void await(InstanceControl instances) throws InterruptedException {
        begin(instances);
        try {
            instances.awaitWarm();
        } finally {
            running.remove(instances);
        }
    }

    /**
     * Replaces instances by {@link InstanceControl#replace}, unless warm-ups are ended.
     *
     * @throws InferenceException as {@link InstanceControl#replace}
     */
    public void replace(
            InstanceControl instances, List<Instance> added, Collection<Instance> removed, List<Warmup.Sample> warmup)
            throws InterruptedException {
        begin(instances);
        try {
            instances.replace(added, removed, warmup);
        } finally {
            running.remove(instances);
        }
    }

    /**
     * Waits until replaced instances are closed, or warm-ups are ended.
     *
     * @param instances has replaced them
     * @param removed the replaced instances
     * @param timeout how long to wait
     * @return as {@link InstanceControl#awaitClosed}
     */
    public boolean awaitClosed(InstanceControl instances, Collection<Instance> removed, Duration timeout) {
        begin(instances);
        try {
            return instances.awaitClosed(removed, timeout.toNanos());
        } finally {
            running.remove(instances);
        }
    }

    private void begin(InstanceControl instances) {
        running.add(instances);
        if (ended) {
            instances.endWarmups();
        }
    }

    /** Ends all warm-ups, including later ones; never blocks. */
    public void end() {
        ended = true;
        running.forEach(InstanceControl::endWarmups);
    }
}
