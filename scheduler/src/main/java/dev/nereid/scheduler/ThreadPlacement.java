package dev.nereid.scheduler;

/** Puts the thread of an instance where its host policy wants it, for instance on certain processors. */
@FunctionalInterface
public interface ThreadPlacement {
    /** Leaves the thread where the operating system puts it. */
    ThreadPlacement ANYWHERE = () -> {};

    /** Places the calling thread; called once, first thing, on each thread of the instance. Must not throw. */
    void place();
}
