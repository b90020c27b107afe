package dev.nereid.scheduler.instance;

/** Places the thread of an instance according to its host policy. */
@FunctionalInterface
public interface ThreadPlacement {
    /** Leaves the thread where the operating system puts it. */
    ThreadPlacement ANYWHERE = () -> {};

    /** Places the calling thread; called once, first, on each thread of the instance. Must not throw. */
    void place();
}
