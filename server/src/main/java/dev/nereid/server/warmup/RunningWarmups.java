package dev.nereid.server.warmup;

import dev.nereid.api.InferenceException;
import dev.nereid.scheduler.ModelScheduler;
import dev.nereid.scheduler.instance.InstanceSlot;
import dev.nereid.scheduler.instance.WarmupSample;
import dev.nereid.spi.ModelInstance;
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
    private final Set<ModelScheduler> running = ConcurrentHashMap.newKeySet();
    private volatile boolean ended;

    /**
     * Waits until the first instances of a scheduler are warm, or warm-ups are ended.
     *
     * @throws InferenceException as {@link ModelScheduler#awaitWarm}
     */
    public void await(ModelScheduler scheduler) throws InterruptedException {
        begin(scheduler);
        try {
            scheduler.awaitWarm();
        } finally {
            running.remove(scheduler);
        }
    }

    /**
     * Does as {@link ModelScheduler#replace}, unless warm-ups are ended.
     *
     * @throws InferenceException as {@link ModelScheduler#replace}
     */
    public void replace(
            ModelScheduler scheduler,
            List<InstanceSlot> added,
            Collection<ModelInstance> removed,
            List<WarmupSample> warmup)
            throws InterruptedException {
        begin(scheduler);
        try {
            scheduler.replace(added, removed, warmup);
        } finally {
            running.remove(scheduler);
        }
    }

    private void begin(ModelScheduler scheduler) {
        running.add(scheduler);
        if (ended) {
            scheduler.endWarmups();
        }
    }

    /** Ends all warm-ups, those that are begun later included; never blocks. */
    public void end() {
        ended = true;
        running.forEach(ModelScheduler::endWarmups);
    }
}
