package dev.nereid.benchmarks;

import java.io.IOException;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;

/** The processes of a run: none outlives it. Safe for use by any thread, so that an interrupt can end them. */
final class Children implements AutoCloseable {
    /** How long a process may take to end when it is asked to. */
    private static final long END_SECONDS = 15;

    private final List<Process> running = new CopyOnWriteArrayList<>();

    /** Set before the processes are ended: whoever adds one later sees it, and ends that one itself. */
    private volatile boolean closed;

    /** Starts a process, which ends with this object at the latest. */
    Process start(ProcessBuilder builder) throws IOException {
        Process process = builder.start();
        running.add(process);
        if (closed) {
            end(process);
            throw new IOException("interrupted");
        }
        return process;
    }

    /** Whether no process is to be started any more. */
    boolean isClosed() {
        return closed;
    }

    /** Ends a process, by force if it does not follow. Blocks. */
    void end(Process process) {
        process.destroy();
        try {
            if (!process.waitFor(END_SECONDS, TimeUnit.SECONDS)) {
                process.destroyForcibly();
            }
        } catch (InterruptedException e) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
        running.remove(process);
    }

    /** Ends all. Blocks. */
    @Override
    public void close() {
        closed = true;
        running.forEach(Process::destroy);
        running.forEach(this::end);
    }
}
