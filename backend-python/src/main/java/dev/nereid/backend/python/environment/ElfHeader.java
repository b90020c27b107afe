package dev.nereid.backend.python.environment;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.Optional;

/**
 * Header of a program of Linux: the machine that runs it. Immutable.
 *
 * @param machine the number of the processor
 * @param bits 32 or 64
 * @param loader the path of the loader that the program needs; empty for one that needs none
 */
record ElfHeader(int machine, int bits, Optional<String> loader) {
    /** The program of this process. */
    static final Path THIS_PROCESS = Path.of("/proc/self/exe");

    private static final int X86_64 = 62;
    private static final int AARCH64 = 183;
    private static final int SIZE = 64;
    private static final int MAGIC = 0x464c457f;
    private static final int CLASS = 4;
    private static final int DATA = 5;
    private static final int MACHINE = 18;
    private static final int SEGMENTS = 32;
    private static final int SEGMENT_SIZE = 54;
    private static final int SEGMENT_COUNT = 56;
    private static final int SEGMENT_OFFSET = 8;
    private static final int SEGMENT_LENGTH = 32;
    private static final int SEGMENT_HEADER = 56;
    private static final int INTERPRETER = 3;
    private static final int MAX_LOADER = 4096;
    private static final int BITS_32 = 32;
    private static final int BITS_64 = 64;

    /** Reads the header of a file or of a link's target; empty if it is no such program, or cannot be read. */
    static Optional<ElfHeader> of(Path file) {
        try (FileChannel in = FileChannel.open(file)) {
            ByteBuffer header = read(in, 0, SIZE);
            if (header.getInt(0) != MAGIC) {
                return Optional.empty();
            }
            header.order(header.get(DATA) == 2 ? ByteOrder.BIG_ENDIAN : ByteOrder.LITTLE_ENDIAN);
            int machine = Short.toUnsignedInt(header.getShort(MACHINE));
            boolean is64 = header.get(CLASS) == 2;
            return Optional.of(
                    new ElfHeader(machine, is64 ? BITS_64 : BITS_32, is64 ? loader(in, header) : Optional.empty()));
        } catch (IOException | IllegalArgumentException | IndexOutOfBoundsException e) {
            return Optional.empty();
        }
    }

    private static Optional<String> loader(FileChannel in, ByteBuffer header) throws IOException {
        int count = Short.toUnsignedInt(header.getShort(SEGMENT_COUNT));
        int size = Short.toUnsignedInt(header.getShort(SEGMENT_SIZE));
        for (int i = 0; i < count; i++) {
            ByteBuffer segment = read(in, header.getLong(SEGMENTS) + (long) i * size, SEGMENT_HEADER)
                    .order(header.order());
            long length = segment.getLong(SEGMENT_LENGTH);
            if (segment.getInt(0) == INTERPRETER && length > 1 && length <= MAX_LOADER) {
                byte[] path =
                        read(in, segment.getLong(SEGMENT_OFFSET), (int) length).array();
                return Optional.of(new String(path, 0, path.length - 1, UTF_8));
            }
        }
        return Optional.empty();
    }

    private static ByteBuffer read(FileChannel in, long offset, int length) throws IOException {
        ByteBuffer bytes = ByteBuffer.allocate(length).order(ByteOrder.LITTLE_ENDIAN);
        while (bytes.hasRemaining()) {
            if (in.read(bytes, offset + bytes.position()) < 0) {
                throw new IOException("shorter than its header says");
            }
        }
        return bytes;
    }

    /** Returns whether the backend is built for this machine: both sides of its protocol are little endian. */
    boolean isSupported() {
        return bits == BITS_64 && (machine == X86_64 || machine == AARCH64);
    }

    String machineName() {
        return switch (machine) {
            case X86_64 -> bits == BITS_64 ? "x86-64" : "x32";
            case AARCH64 -> "aarch64";
            case 3 -> "x86";
            case 40 -> "arm";
            case 21 -> "ppc64";
            case 22 -> "s390";
            case 243 -> "riscv";
            default -> "machine " + machine;
        };
    }
}
