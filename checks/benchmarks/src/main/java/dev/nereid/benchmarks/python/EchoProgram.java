package dev.nereid.benchmarks.python;

import dev.nereid.backend.python.posix.SocketCalls;
import dev.nereid.benchmarks.run.BenchmarkRun;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * A Python program of a few lines that responds on a UNIX socket, and this end of its connection, which is used by the same
 * functions as in the backend. Owned by the thread that measures.
 */
final class EchoProgram implements AutoCloseable {
    private static final int START_MILLIS = 30_000;

    private final BenchmarkRun bench;
    private final Process process;
    private final int socket;

    private EchoProgram(BenchmarkRun bench, Process process, int socket) {
        this.bench = bench;
        this.process = process;
        this.socket = socket;
    }

    /**
     * Starts a program, and waits until it is connected. Blocks.
     *
     * @param program the resource with its text
     * @param arguments its arguments after the abstract name of the socket
     */
    static EchoProgram start(BenchmarkRun bench, Interpreter python, String program, String... arguments)
            throws IOException {
        String name = "nereid-" + program + "-" + ProcessHandle.current().pid() + "-" + System.nanoTime();
        Path text = bench.workspace().copyOf(EchoProgram.class, program);
        int listening = SocketCalls.listen(name);
        try {
            List<String> command = new ArrayList<>(List.of(python.executable().toString(), text.toString(), name));
            command.addAll(List.of(arguments));
            Process process = bench.children().start(new ProcessBuilder(command).inheritIO());
            int socket = SocketCalls.accept(listening, START_MILLIS);
            if (socket < 0) {
                bench.children().end(process);
                throw new IOException(program + ": not connected within " + START_MILLIS + " ms");
            }
            return new EchoProgram(bench, process, socket);
        } finally {
            SocketCalls.close(listening);
        }
    }

    int socket() {
        return socket;
    }

    /** Ends the program; no thread uses the connection any more. */
    @Override
    public void close() {
        SocketCalls.close(socket);
        bench.children().end(process);
    }
}
