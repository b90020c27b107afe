package dev.nereid.benchmarks.gpu;

import dev.nereid.cuda.CudaDriver;
import dev.nereid.cuda.EventFence;
import dev.nereid.cuda.EventPool;
import dev.nereid.cuda.GpuContext;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Base64;

/**
 * Device memory of a client, in a separate process: prints its handle, then writes and compares numbers as its standard
 * input says. Confined to one thread.
 */
final class ClientMemory {
    /** The argument that makes a process the client. */
    static final String ARGUMENT = "--client";

    static final int COUNT = 1024;
    static final long BYTES = (long) COUNT * Float.BYTES;
    private static final int REGIONS = 2;

    private final GpuContext gpu;
    private final EventPool events;
    private final long device;
    private final long stream;
    private final MemorySegment host;

    private ClientMemory(Arena arena) {
        gpu = GpuContext.open(0);
        events = new EventPool(gpu);
        device = gpu.call(driver -> driver.allocate(REGIONS * BYTES));
        stream = gpu.call(CudaDriver::createStream);
        host = arena.allocate(REGIONS * BYTES);
    }

    /**
     * Runs the client until its input ends: prints the handle; on {@code fill}, writes 0, 1, 2 and so on to the first half
     * of the memory; on {@code compare N}, prints whether the second half has these numbers plus N.
     */
    static void run(InputStreamReader in, PrintStream out) throws Exception {
        try (Arena arena = Arena.ofShared();
                BufferedReader lines = new BufferedReader(in)) {
            ClientMemory memory = new ClientMemory(arena);
            out.println(memory.handle(arena));
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                if (line.equals("fill")) {
                    memory.fill();
                    out.println("filled");
                } else if (line.startsWith("compare ")) {
                    out.println(memory.compare(Float.parseFloat(line.substring("compare ".length()))));
                }
                out.flush();
            }
        }
    }

    private String handle(Arena arena) {
        MemorySegment handle = arena.allocate(CudaDriver.IPC_HANDLE_SIZE);
        gpu.run(driver -> driver.exportMemory(device, handle.address()));
        return Base64.getEncoder().encodeToString(handle.toArray(ValueLayout.JAVA_BYTE));
    }

    private void fill() throws Exception {
        for (int i = 0; i < COUNT; i++) {
            host.setAtIndex(ValueLayout.JAVA_FLOAT, i, i);
            host.setAtIndex(ValueLayout.JAVA_FLOAT, (long) COUNT + i, -1);
        }
        gpu.run(driver -> driver.copyFromHost(host.address(), device, REGIONS * BYTES, stream));
        await();
    }

    private String compare(float difference) throws Exception {
        gpu.run(driver -> driver.copyToHost(device, host.address(), REGIONS * BYTES, stream));
        await();
        for (int i = 0; i < COUNT; i++) {
            float found = host.getAtIndex(ValueLayout.JAVA_FLOAT, (long) COUNT + i);
            if (found != i + difference) {
                return "number " + i + " is " + found + " (expected: " + (i + difference) + ")";
            }
        }
        return "equal";
    }

    private void await() throws Exception {
        EventFence fence = events.record(stream);
        try {
            if (!fence.await(Duration.ofMinutes(1))) {
                throw new IOException("copy: not done within a minute");
            }
        } finally {
            fence.release();
        }
    }

    /** The process of a client. Owned by the check that started it. */
    static final class ClientProcess implements AutoCloseable {
        private final Process process;
        private final BufferedReader out;
        private final String handle;

        ClientProcess(String classPath) throws IOException {
            process = new ProcessBuilder(
                            ProcessHandle.current().info().command().orElseThrow(),
                            "--enable-native-access=ALL-UNNAMED",
                            "-cp",
                            classPath,
                            GpuCheck.class.getName(),
                            ARGUMENT)
                    .redirectError(ProcessBuilder.Redirect.INHERIT)
                    .start();
            out = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
            handle = line();
        }

        /** Returns the handle of its memory, in Base64. */
        String handle() {
            return handle;
        }

        /** Sends a command and returns the answer. Blocks. */
        String ask(String command) throws IOException {
            process.getOutputStream().write((command + "\n").getBytes(StandardCharsets.UTF_8));
            process.getOutputStream().flush();
            return line();
        }

        private String line() throws IOException {
            String line = out.readLine();
            if (line == null) {
                throw new IOException("the process of the client ended");
            }
            return line;
        }

        @Override
        public void close() throws IOException {
            process.getOutputStream().close();
            process.onExit().join();
            out.close();
        }
    }
}
