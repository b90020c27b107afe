package dev.nereid.backend.python.process;

import dev.nereid.backend.python.posix.PipeCalls;
import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * A pipe for the output of a process, of which a read in progress ends when it is closed. Safe for use by any thread.
 *
 * <p>The stream of {@link Process#getInputStream} cannot do that: a read of it lasts until the last process has ended
 * that has inherited the output, and {@link InputStream#close} does not end it. A pipe that is read by a channel can.
 *
 * <p>The owner starts a process with the output {@link #redirect}, calls {@link #started}, whether the start has failed
 * or not, and closes the pipe at the end.
 */
public final class OutputPipe implements AutoCloseable {
    private static final String DESCRIPTORS = "/proc/self/fd/";

    private final AtomicBoolean writing = new AtomicBoolean(true);
    private final int writeEnd;
    private final PipeInput input;

    private OutputPipe(int writeEnd, PipeInput input) {
        this.writeEnd = writeEnd;
        this.input = input;
    }

    /** Creates a pipe, owned by the caller; fails if no descriptor is left. */
    public static OutputPipe open() throws IOException {
        PipeCalls.Pipe pipe = PipeCalls.open();
        boolean opened = false;
        try {
            OutputPipe result =
                    new OutputPipe(pipe.writeEnd(), new PipeInput(new FileInputStream(DESCRIPTORS + pipe.readEnd())));
            opened = true;
            return result;
        } finally {
            PipeCalls.close(pipe.readEnd());
            if (!opened) {
                PipeCalls.close(pipe.writeEnd());
            }
        }
    }

    /**
     * Returns the output for a process to be started. Valid until {@link #started}.
     *
     * @return the argument of {@link ProcessBuilder#redirectOutput(ProcessBuilder.Redirect)}; standard error follows it
     *     by {@link ProcessBuilder#redirectErrorStream(boolean)}
     */
    public ProcessBuilder.Redirect redirect() {
        return ProcessBuilder.Redirect.appendTo(new File(DESCRIPTORS + writeEnd));
    }

    /** Closes the end of the server, so that the output ends with the processes that write to it. */
    public void started() {
        if (writing.compareAndSet(true, false)) {
            PipeCalls.close(writeEnd);
        }
    }

    /**
     * Returns what the process writes.
     *
     * @return the stream, for one thread that reads; its close by any thread ends a read in progress with an {@link
     *     IOException}, and closes the pipe for the processes that write to it
     */
    public InputStream input() {
        return input;
    }

    /** Closes both ends. A read in progress fails with an {@link IOException}. Never blocks. */
    @Override
    public void close() throws IOException {
        started();
        input.close();
    }

    /** The end that is read. */
    private static final class PipeInput extends InputStream {
        private final FileInputStream file;

        /** Of the same descriptor. Its close wakes up threads that read. */
        private final FileChannel channel;

        PipeInput(FileInputStream file) {
            this.file = file;
            channel = file.getChannel();
        }

        @Override
        public int read() throws IOException {
            byte[] single = new byte[1];
            return read(single, 0, 1) < 0 ? -1 : Byte.toUnsignedInt(single[0]);
        }

        @Override
        public int read(byte[] buffer, int offset, int length) throws IOException {
            return channel.read(ByteBuffer.wrap(buffer, offset, length));
        }

        @Override
        public int available() throws IOException {
            return file.available();
        }

        @Override
        public void close() throws IOException {
            channel.close();
        }
    }
}
