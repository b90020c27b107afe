package dev.nereid.scheduler;

import dev.nereid.scheduler.instance.Warmup;
import java.util.List;

/** A warm-up that executes nothing, so that the threads of instances start with the model, not with requests. */
public final class EarlyThreads {
    public static final List<Warmup.Sample> WARMUP = List.of(new Warmup.Sample("early", 1, List::of));

    private EarlyThreads() {}
}
