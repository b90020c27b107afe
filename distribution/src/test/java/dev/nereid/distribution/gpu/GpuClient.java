package dev.nereid.distribution.gpu;

import com.google.protobuf.ByteString;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Base64;

/** A process with device memory, which it shares by a handle. Confined to the test's thread. */
final class GpuClient implements AutoCloseable {
    /** Prints the handle of memory, then reads and writes numbers in it as the lines of its standard input say. */
    private static final String PROGRAM = """
            import base64, ctypes, sys
            cuda = ctypes.CDLL(sys.argv[1])
            cuda.cuCtxSetCurrent.argtypes = [ctypes.c_void_p]
            context, memory = ctypes.c_void_p(), ctypes.c_void_p()
            handle = ctypes.create_string_buffer(64)
            assert cuda.cuInit(0) == 0
            assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
            assert cuda.cuCtxSetCurrent(context) == 0
            assert cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(int(sys.argv[2]))) == 0
            assert cuda.cuIpcGetMemHandle(handle, memory) == 0
            print(base64.b64encode(handle.raw).decode(), flush=True)
            for line in sys.stdin:
                command, offset, count, number = line.split()
                numbers = (ctypes.c_float * int(count)).from_address(memory.value + int(offset))
                if command == "fill":
                    for i in range(len(numbers)):
                        numbers[i] = float(number) + i
                    print("filled", flush=True)
                else:
                    wrong = [i for i in range(len(numbers)) if numbers[i] != float(number) + i]
                    print(f"{wrong[0]}: {numbers[wrong[0]]}" if wrong else "equal", flush=True)
            """;

    private final Process process;
    private final PrintStream in;
    private final BufferedReader out;
    private final String handle;

    /**
     * Starts the process.
     *
     * @param driver the library of the driver
     * @param byteSize the size of its memory
     */
    GpuClient(Path driver, long byteSize) throws IOException {
        process = new ProcessBuilder("/usr/bin/python3", "-c", PROGRAM, driver.toString(), Long.toString(byteSize))
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        in = new PrintStream(process.getOutputStream(), true, StandardCharsets.UTF_8);
        out = process.inputReader(StandardCharsets.UTF_8);
        handle = String.valueOf(out.readLine());
    }

    /** Returns the handle in Base64. */
    String handle() {
        return handle;
    }

    /** Returns the handle in bytes. */
    ByteString handleBytes() {
        return ByteString.copyFrom(Base64.getDecoder().decode(handle));
    }

    /** Writes a first number, and each next one greater by 1. */
    void fill(long offset, int count, float first) throws IOException {
        in.println("fill " + offset + " " + count + " " + first);
        if (!"filled".equals(out.readLine())) {
            throw new IOException("client: ended");
        }
    }

    /** Returns {@code equal}, or the first number that is not as {@link #fill} writes it. */
    String compare(long offset, int count, float first) throws IOException {
        in.println("compare " + offset + " " + count + " " + first);
        return String.valueOf(out.readLine());
    }

    /** Ends the process, and with it the owner of the memory. */
    @Override
    public void close() {
        process.destroyForcibly();
        process.onExit().join();
    }
}
