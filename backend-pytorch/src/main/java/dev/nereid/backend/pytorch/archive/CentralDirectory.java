package dev.nereid.backend.pytorch.archive;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** The list of records at the end of a zip file, which a reader has in memory as a whole. Static functions only. */
final class CentralDirectory {
    /** Many times as large as the list of a module with tens of thousands of tensors. */
    static final long MAX_BYTES = 32 << 20;

    private static final int END = 0x06054b50;
    private static final int END_BYTES = 22;
    private static final int END_SIZE = 12;
    private static final int END_COMMENT = 20;
    private static final int MAX_COMMENT_BYTES = 0xFFFF;

    private static final int LOCATOR = 0x07064b50;
    private static final int LOCATOR_BYTES = 20;
    private static final int LOCATOR_POSITION = 8;
    private static final int END_64_BYTES = 56;
    private static final int END_64_SIZE = 40;

    private CentralDirectory() {}

    /** Returns the size in bytes that a file claims for its list; 0 where the file is no zip file. */
    static long size(Path file) throws IOException {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
            long length = channel.size();
            int tailBytes = (int) Math.min(length, END_BYTES + MAX_COMMENT_BYTES + LOCATOR_BYTES);
            ByteBuffer tail = read(channel, length - tailBytes, tailBytes);
            for (int at = tail.limit() - END_BYTES; at >= 0; at--) {
                boolean isEnd = tail.getInt(at) == END
                        && Short.toUnsignedInt(tail.getShort(at + END_COMMENT)) == tail.limit() - at - END_BYTES;
                if (isEnd) {
                    long large = at < LOCATOR_BYTES ? 0 : sizeIn64(channel, tail, at - LOCATOR_BYTES);
                    long size = Integer.toUnsignedLong(tail.getInt(at + END_SIZE));
                    return size == 0xFFFFFFFFL && large > 0 ? large : Math.max(size, large);
                }
            }
            return 0;
        }
    }

    /** Returns the size in the record for files of more than 4 GB; 0 if there is none. */
    private static long sizeIn64(FileChannel channel, ByteBuffer tail, int at) throws IOException {
        if (tail.getInt(at) != LOCATOR) {
            return 0;
        }
        long position = tail.getLong(at + LOCATOR_POSITION);
        if (position < 0 || position > channel.size() - END_64_BYTES) {
            return 0;
        }
        return read(channel, position, END_64_BYTES).getLong(END_64_SIZE);
    }

    private static ByteBuffer read(FileChannel channel, long position, int bytes) throws IOException {
        ByteBuffer buffer = ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN);
        long at = position;
        while (buffer.hasRemaining()) {
            int count = channel.read(buffer, at);
            if (count < 0) {
                break; // cut while it is read
            }
            at += count;
        }
        return buffer.flip();
    }
}
