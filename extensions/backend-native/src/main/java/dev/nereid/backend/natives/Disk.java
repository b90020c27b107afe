package dev.nereid.backend.natives;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;

/** Writes files that are whole after a crash of the machine. Any thread may use it. */
interface Disk {
    /** The file system of the operating system. */
    Disk SYSTEM = new Disk() {
        @Override
        public void write(InputStream content, Path file) throws IOException {
            try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE, StandardOpenOption.CREATE_NEW);
                    OutputStream out = Channels.newOutputStream(channel)) {
                content.transferTo(out);
                channel.force(true);
            }
        }

        @Override
        public void sync(Path directory) throws IOException {
            try (FileChannel channel = FileChannel.open(directory, StandardOpenOption.READ)) {
                channel.force(true);
            }
        }

        @Override
        public void move(Path directory, Path target) throws IOException {
            Files.move(directory, target, StandardCopyOption.ATOMIC_MOVE);
        }
    };

    /** Writes a new file. Its content is on the disk when the method returns. */
    void write(InputStream content, Path file) throws IOException;

    /** Returns when the names in a directory are on the disk. */
    void sync(Path directory) throws IOException;

    /** Moves a directory in one step; fails if the target is there. */
    void move(Path directory, Path target) throws IOException;
}
