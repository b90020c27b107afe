package dev.nereid.scheduler.instance;

/** Places the thread of an instance according to its host policy. */
@FunctionalInterface
public interface ThreadPlacement {
    /** Leaves the placement to the operating system. */
    ThreadPlacement ANYWHERE = () -> {};

    /** Places the calling thread; called once, first, on each thread of the instance. Must not throw. */
    void place();
}
