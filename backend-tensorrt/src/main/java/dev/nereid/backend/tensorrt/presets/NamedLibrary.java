package dev.nereid.backend.tensorrt.presets;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;

/**
 * Makes a library known by its bare name, wherever it lies. Static functions only.
 *
 * <p>TensorRT opens the kernels of its builder by the name of their file, which is looked for in the directories that
 * the process began with. The dynamic linker also finds a loaded library, under the name by which it was requested: so
 * an empty library is written that needs the other one by that name and says where it lies, and is opened.
 */
final class NamedLibrary {
    private static final int HEADER = 64;
    private static final int SEGMENT_HEADER = 56;
    private static final int SYMBOL = 24;
    private static final int PAGE = 4096;

    /** The offset of the machine in the header of a file. */
    private static final int MACHINE = 18;

    // Types of segments and of entries of the dynamic section, by the names of the ELF specification.
    private static final int PT_LOAD = 1;
    private static final int PT_DYNAMIC = 2;
    private static final int PT_GNU_STACK = 0x6474E551;
    private static final int READ_WRITE = 6;
    private static final long DT_NEEDED = 1;
    private static final long DT_HASH = 4;
    private static final long DT_STRTAB = 5;
    private static final long DT_SYMTAB = 6;
    private static final long DT_STRSZ = 10;
    private static final long DT_SYMENT = 11;
    private static final long DT_RUNPATH = 29;

    private NamedLibrary() {}

    /**
     * Loads libraries of one directory, so that they are found by their names. They stay in the process.
     *
     * @param cache a directory that can be written
     * @throws IOException if one cannot be loaded, with the linker's reason
     */
    static void load(List<Path> libraries, Path cache) throws IOException {
        String directory = String.valueOf(libraries.getFirst().toAbsolutePath().getParent());
        List<String> names = new ArrayList<>();
        for (Path library : libraries) {
            names.add(String.valueOf(library.getFileName()));
        }
        Path partial = Files.createTempFile(cache, "library", ".part");
        Files.write(partial, content(directory, names, machine(libraries.getFirst())));
        Path stub = cache.resolve("libnereid-needs-" + Integer.toHexString(names.hashCode()) + ".so");
        Files.move(partial, stub, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
        LinkerLibrary.open(stub.toAbsolutePath().toString());
    }

    /** Returns a library without code that needs others, in one segment: headers, dynamic section, names, symbols. */
    private static byte[] content(String directory, List<String> names, short machine) {
        StringBuilder strings = new StringBuilder("\0");
        List<long[]> entries = new ArrayList<>();
        for (String name : names) {
            entries.add(new long[] {DT_NEEDED, size(strings)});
            strings.append(name).append('\0');
        }
        entries.add(new long[] {DT_RUNPATH, size(strings)});
        strings.append(directory).append('\0');
        byte[] text = strings.toString().getBytes(StandardCharsets.UTF_8);

        int segments = 3;
        int dynamic = HEADER + segments * SEGMENT_HEADER;
        int dynamicSize = (entries.size() + 6) * 2 * Long.BYTES; // five more entries, and the end
        int symbols = dynamic + dynamicSize;
        int hash = symbols + SYMBOL;
        int table = hash + 4 * Integer.BYTES;
        int end = table + text.length;
        entries.add(new long[] {DT_HASH, hash});
        entries.add(new long[] {DT_SYMTAB, symbols});
        entries.add(new long[] {DT_SYMENT, SYMBOL});
        entries.add(new long[] {DT_STRTAB, table});
        entries.add(new long[] {DT_STRSZ, text.length});

        ByteBuffer file = ByteBuffer.allocate(end).order(ByteOrder.LITTLE_ENDIAN);
        file.put(new byte[] {0x7F, 'E', 'L', 'F', 2, 1, 1}).position(16);
        file.putShort((short) 3).putShort(machine).putInt(1); // a shared object, version 1
        file.putLong(0).putLong(HEADER).putLong(0).putInt(0); // no entry point, segments, no sections
        file.putShort((short) HEADER).putShort((short) SEGMENT_HEADER).putShort((short) segments);
        file.position(HEADER);
        segment(file, PT_LOAD, 0, end, PAGE);
        segment(file, PT_DYNAMIC, dynamic, dynamicSize, Long.BYTES);
        segment(file, PT_GNU_STACK, 0, 0, 16); // that the stack need not be executable
        for (long[] entry : entries) {
            file.putLong(entry[0]).putLong(entry[1]);
        }
        file.position(hash);
        file.putInt(1).putInt(1).putInt(0).putInt(0); // one bucket and one symbol, which has no name
        file.position(table);
        file.put(text);
        return file.array();
    }

    private static long size(StringBuilder strings) {
        return strings.toString().getBytes(StandardCharsets.UTF_8).length;
    }

    private static void segment(ByteBuffer file, int type, long offset, long size, long alignment) {
        file.putInt(type).putInt(READ_WRITE);
        file.putLong(offset)
                .putLong(offset)
                .putLong(offset)
                .putLong(size)
                .putLong(size)
                .putLong(alignment);
    }

    private static short machine(Path library) throws IOException {
        try (InputStream in = Files.newInputStream(library)) {
            byte[] header = in.readNBytes(MACHINE + Short.BYTES);
            if (header.length < MACHINE + Short.BYTES) {
                throw new IOException(library + ": " + header.length + " bytes (expected: a library)");
            }
            return ByteBuffer.wrap(header).order(ByteOrder.LITTLE_ENDIAN).getShort(MACHINE);
        }
    }
}
