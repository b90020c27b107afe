package dev.nereid.benchmarks.python;

import dev.nereid.backend.python.posix.MemoryCalls;
import dev.nereid.backend.python.posix.SocketCalls;
import dev.nereid.benchmarks.load.InferBody;
import dev.nereid.benchmarks.load.ThreadLoad;
import dev.nereid.benchmarks.report.Sample;
import dev.nereid.benchmarks.run.BenchmarkRun;
import dev.nereid.benchmarks.run.Workload;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.List;
import java.util.stream.Stream;

/**
 * Exchanges of the bytes of a tensor with a Python program that does nothing else. Owned by, and confined to, the thread
 * that measures.
 */
final class Echoes implements Workload, AutoCloseable {
    /** The size of a message that only says that something lies in memory. */
    private static final int NOTE = 64;

    private static final int WRITE_MILLIS = 10_000;

    private final EchoProgram program;
    private final ThreadLoad load;

    private Echoes(EchoProgram program, ThreadLoad load) {
        this.program = program;
        this.load = load;
    }

    /** Small messages, one at a time: the measuring thread sends the bytes and receives them. */
    static Echoes alone(BenchmarkRun bench, Interpreter python, InferBody body) throws IOException {
        EchoProgram program = EchoProgram.start(bench, python, "echo.py");
        MemorySegment bytes = bytes(body);
        return new Echoes(program, new ThreadLoad("socket, echo in Python", List.of(echo(program, bytes))));
    }

    /** Large messages, one at a time, which the program returns when it has all of them. */
    static Echoes whole(BenchmarkRun bench, Interpreter python, InferBody body) throws IOException {
        MemorySegment bytes = bytes(body);
        EchoProgram program = EchoProgram.start(bench, python, "echo_whole.py", "" + bytes.byteSize());
        return new Echoes(
                program, new ThreadLoad("1 MB x 1, echo in Python over the socket", List.of(echo(program, bytes))));
    }

    /** Small messages of several threads over one socket. */
    static Echoes together(BenchmarkRun bench, Interpreter python, InferBody body, int threads) throws IOException {
        EchoProgram program = EchoProgram.start(bench, python, "echo.py");
        SharedSocket socket = new SharedSocket(program.socket(), bytes(body));
        List<ThreadLoad.Caller> callers =
                Stream.generate(socket::newCaller).limit(threads).toList();
        return new Echoes(program, new ThreadLoad("one socket, echo in Python", callers));
    }

    /**
     * Large tensors in memory that both map, one at a time: this side writes the bytes once, the program copies them once, and
     * a message of 64 bytes goes to and fro. This side does not read the copy: the server does not either.
     */
    static Echoes inMemory(BenchmarkRun bench, Interpreter python, InferBody body) throws IOException {
        MemorySegment bytes = bytes(body);
        long size = bytes.byteSize();
        int file = MemoryCalls.create("nereid-benchmark");
        try {
            MemoryCalls.resize(file, 2 * size);
            MemorySegment memory = MemoryCalls.map(file, 2 * size);
            String path = "/proc/" + ProcessHandle.current().pid() + "/fd/" + file;
            EchoProgram program = EchoProgram.start(bench, python, "echo_memory.py", "" + size, path);
            ThreadLoad.Caller note = echo(program, Arena.ofAuto().allocate(NOTE));
            ThreadLoad.Caller caller = () -> {
                MemorySegment.copy(bytes, 0, memory, 0, size);
                note.call();
            };
            caller.call();
            if (memory.asSlice(size).mismatch(bytes) >= 0) {
                program.close();
                throw new IOException("echo in memory: another tensor than was sent");
            }
            // The mapping stays until the end of the run.
            return new Echoes(program, new ThreadLoad("shared memory, one copy by each side", List.of(caller)));
        } finally {
            MemoryCalls.close(file);
        }
    }

    private static MemorySegment bytes(InferBody body) {
        MemorySegment content = MemorySegment.ofBuffer(body.tensor());
        return Arena.ofAuto().allocate(content.byteSize(), 64).copyFrom(content);
    }

    /** Returns a call that sends bytes and receives as many. */
    private static ThreadLoad.Caller echo(EchoProgram program, MemorySegment bytes) throws IOException {
        int socket = program.socket();
        MemorySegment state = SocketCalls.newState(Arena.ofAuto());
        MemorySegment returned = Arena.ofAuto().allocate(bytes.byteSize(), 64);
        ThreadLoad.Caller caller = () -> {
            send(state, socket, bytes);
            receive(state, socket, returned);
        };
        caller.call();
        if (returned.mismatch(bytes) >= 0) {
            program.close();
            throw new IOException("echo: other bytes than were sent");
        }
        return caller;
    }

    private static void send(MemorySegment state, int socket, MemorySegment bytes) throws IOException {
        long sent = SocketCalls.send(state, socket, bytes);
        while (sent < bytes.byteSize()) { // only large ones
            long more = SocketCalls.send(state, socket, bytes.asSlice(Math.max(0, sent)));
            if (more == SocketCalls.GONE
                    || (more == SocketCalls.FULL && !SocketCalls.awaitWritable(socket, WRITE_MILLIS))) {
                throw new IOException("echo: the program has ended or does not read");
            }
            sent = Math.max(0, sent) + Math.max(0, more);
        }
    }

    private static void receive(MemorySegment state, int socket, MemorySegment bytes) throws IOException {
        long received = 0;
        while (received < bytes.byteSize()) {
            long more = SocketCalls.receive(state, socket, received == 0 ? bytes : bytes.asSlice(received));
            if (more == SocketCalls.GONE) {
                throw new IOException("echo: the program has ended");
            }
            received += Math.max(0, more);
        }
    }

    @Override
    public String name() {
        return load.name();
    }

    @Override
    public Sample load(Duration time) throws IOException, InterruptedException {
        return load.load(time);
    }

    @Override
    public void close() {
        program.close();
    }
}
