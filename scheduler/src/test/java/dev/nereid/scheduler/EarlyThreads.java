package dev.nereid.scheduler;

import dev.nereid.scheduler.instance.WarmupSample;
import java.util.List;

/** A warm-up that executes nothing, so that the threads of instances start with the model, not with requests. */
public final class EarlyThreads {
    public static final List<WarmupSample> WARMUP = List.of(new WarmupSample("early", 1, List::of));

    private EarlyThreads() {}
}
