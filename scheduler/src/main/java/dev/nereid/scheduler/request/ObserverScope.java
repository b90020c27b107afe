package dev.nereid.scheduler.request;

import org.jspecify.annotations.Nullable;

/** Marks the calls of observers by a thread. Confined to that thread. */
public final class ObserverScope {
    private static final ThreadLocal<ObserverScope> CURRENT = ThreadLocal.withInitial(ObserverScope::new);

    private int depth;
    private @Nullable Runnable afterwards;

    private ObserverScope() {}

    /** Returns the scope of the calling thread. */
    public static ObserverScope current() {
        return CURRENT.get();
    }

    /** Begins calls of observers; {@link #close} ends them. May be nested. */
    public void open() {
        depth++;
    }

    /** Ends calls of observers. The outermost one runs the action that {@link #afterwards} set. */
    public void close() {
        try {
            while (depth == 1 && afterwards != null) {
                Runnable action = afterwards;
                afterwards = null;
                action.run();
            }
        } finally {
            depth--;
        }
    }

    /** Returns whether the thread calls observers. */
    public boolean isOpen() {
        return depth > 0;
    }

    /** Sets the action that runs once when the outermost calls have ended; replaces an earlier one. */
    void afterwards(Runnable action) {
        afterwards = action;
    }
}
