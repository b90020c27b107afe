package dev.nereid.benchmarks.run;

import java.io.IOException;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;

/** Child processes of a run, ended with it. Safe for use by any thread, so that an interrupt can end them. */
public final class ChildProcesses implements AutoCloseable {
    /** Timeout for a process to end on request. */
    private static final long END_SECONDS = 15;

    private final List<Process> running = new CopyOnWriteArrayList<>();

    /** Set before the processes are ended. A thread that adds one later sees it, and ends that process itself. */
    private volatile boolean closed;

    /** Starts a process, which ends with this object at the latest. */
    public Process start(ProcessBuilder builder) throws IOException {
        Process process = builder.start();
        running.add(process);
        if (closed) {
            end(process);
            throw new IOException("interrupted");
        }
        return process;
    }

    /** Returns whether no process is to be started any more. */
    public boolean isClosed() {
        return closed;
    }

    /** Ends a process, by force if it does not follow. Blocks. */
    public void end(Process process) {
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
