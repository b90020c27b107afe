package dev.nereid.server.control;

import dev.nereid.repository.ModelDirectory;
import java.util.concurrent.atomic.AtomicInteger;

/** The files that a model is loaded from, until nothing uses them. Lock-free; safe for use by any thread. */
final class ModelFiles {
    private final ModelDirectory directory;
    private final String origin;
    private final Runnable end;
    private final AtomicInteger uses = new AtomicInteger(1);

    /**
     * Creates the files of a load, in use by the caller.
     *
     * @param directory the directory that they lie in
     * @param origin where they come from: a path or URL, the same for copies of the same model
     * @param end removes the files, or their lease; called once
     */
    ModelFiles(ModelDirectory directory, String origin, Runnable end) {
        this.directory = directory;
        this.origin = origin;
        this.end = end;
    }

    ModelDirectory directory() {
        return directory;
    }

    String origin() {
        return origin;
    }

    /** Begins another use, while there is one. */
    void retain() {
        uses.incrementAndGet();
    }

    /** Ends a use. After the last one the files are released. */
    void release() {
        if (uses.decrementAndGet() == 0) {
            end.run();
        }
    }
}
