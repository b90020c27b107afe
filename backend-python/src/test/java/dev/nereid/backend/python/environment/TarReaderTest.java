package dev.nereid.backend.python.environment;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.backend.python.environment.TarEntry.Kind;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import org.junit.jupiter.api.Test;

class TarReaderTest {
    @Test
    void readsAllKindsOfEntries() throws IOException {
        byte[] tar = new TarArchive()
                .directory("d/", 0755)
                .file("d/f", "content", 0600)
                .symbolicLink("d/s", "/usr/bin/python3")
                .hardLink("d/h", "d/f")
                .header("d/p", '6', 0, 0644, "")
                .tar();

        assertThat(entries(tar))
                .containsExactly(
                        new TarEntry("d/", Kind.DIRECTORY, 0, 0755, TarArchive.MODIFIED, ""),
                        new TarEntry("d/f", Kind.FILE, 7, 0600, TarArchive.MODIFIED, ""),
                        new TarEntry("d/s", Kind.SYMBOLIC_LINK, 0, 0777, TarArchive.MODIFIED, "/usr/bin/python3"),
                        new TarEntry("d/h", Kind.HARD_LINK, 0, 0644, TarArchive.MODIFIED, "d/f"),
                        new TarEntry("d/p", Kind.OTHER, 0, 0644, TarArchive.MODIFIED, ""));
    }

    @Test
    void readsTheContentOfAFileOrSkipsIt() throws IOException {
        String large = "x".repeat(5000);
        TarReader reader = reader(
                new TarArchive().file("a", large).file("b", "two").file("c", "").tar());

        reader.next();
        assertThat(reader.next()).isPresent();
        assertThat(content(reader)).isEqualTo("two");
        assertThat(reader.next().orElseThrow().name()).isEqualTo("c");
        assertThat(content(reader)).isEmpty();
        assertThat(reader.next()).isEmpty();
    }

    @Test
    void takesNamesSizesAndTimesFromPax() throws IOException {
        String name = "é/" + "long".repeat(60);
        byte[] tar = new TarArchive()
                .pax('g', "comment=x", "mtime=7")
                .pax('x', "path=" + name, "mtime=12.75")
                .file("short", "1")
                .pax('x', "linkpath=" + name)
                .symbolicLink("l", "short")
                .pax('x', "GNU.sparse.major=1")
                .file("sparse", "1")
                .tar();

        List<TarEntry> entries = entries(tar);

        assertThat(entries.get(0)).isEqualTo(new TarEntry(name, Kind.FILE, 1, 0644, 12, ""));
        assertThat(entries.get(1)).isEqualTo(new TarEntry("l", Kind.SYMBOLIC_LINK, 0, 0777, 7, name));
        assertThat(entries.get(2).kind()).isEqualTo(Kind.OTHER);
    }

    @Test
    void takesLongNamesFromGnu() throws IOException {
        String name = "directory/".repeat(20) + "file";
        byte[] data = (name + "\0").getBytes(UTF_8);
        byte[] tar = new TarArchive()
                .header("././@LongLink", 'L', data.length, 0644, "")
                .data(data)
                .header("././@LongLink", 'K', data.length, 0644, "")
                .data(data)
                .symbolicLink("directory/directo", "direct")
                .file("next", "1")
                .tar();

        assertThat(entries(tar))
                .extracting(TarEntry::name, TarEntry::link)
                .containsExactly(
                        org.assertj.core.groups.Tuple.tuple(name, name),
                        org.assertj.core.groups.Tuple.tuple("next", ""));
    }

    @Test
    void joinsThePrefixOfUstar() throws IOException {
        byte[] header = Arrays.copyOf(new TarArchive().file("name", "").unfinished(), 512);
        System.arraycopy("some/prefix".getBytes(UTF_8), 0, header, 345, 11);

        assertThat(entries(TarArchive.checked(header)))
                .extracting(TarEntry::name)
                .containsExactly("some/prefix/name");
    }

    @Test
    void readsSizesToTheBase256() throws IOException {
        byte[] header = Arrays.copyOf(new TarArchive().file("name", "").unfinished(), 512);
        Arrays.fill(header, 124, 136, (byte) 0);
        header[124] = (byte) 0x80;
        header[132] = 2; // 2 << 24
        TarReader reader = reader(TarArchive.checked(header));

        assertThat(reader.next().orElseThrow().size()).isEqualTo(2 << 24);
        assertThatThrownBy(() -> reader.read(new byte[10]))
                .isInstanceOf(ArchiveException.class)
                .hasMessageContaining("ends in the middle of 'name'");
    }

    @Test
    void refusesNegativeAndHugeSizes() {
        for (int first : new int[] {0xff, 0xbf}) {
            byte[] header = Arrays.copyOf(new TarArchive().file("name", "").unfinished(), 512);
            Arrays.fill(header, 124, 136, (byte) 0xff);
            header[124] = (byte) first;

            assertThatThrownBy(() -> entries(TarArchive.checked(header))).isInstanceOf(ArchiveException.class);
        }
    }

    @Test
    void refusesExtendedHeadersThatAreTooLargeOrWrong() {
        assertThatThrownBy(() -> entries(
                        new TarArchive().header("pax", 'x', 1L << 32, 0644, "").tar()))
                .hasMessageContaining("extended header: 4294967296 bytes");
        for (String records : List.of("9999999999 path=x\n", "5 path=x\n", "10 path:x\n", " path", "3 x", "-1 a=b\n")) {
            byte[] data = records.getBytes(UTF_8);
            byte[] tar = new TarArchive()
                    .header("pax", 'x', data.length, 0644, "")
                    .data(data)
                    .file("f", "")
                    .tar();
            assertThatThrownBy(() -> entries(tar)).as(records).isInstanceOf(ArchiveException.class);
        }
    }

    @Test
    void refusesWhatIsNoArchive() {
        assertThatThrownBy(() -> entries("no archive".repeat(100).getBytes(UTF_8)))
                .isInstanceOf(ArchiveException.class)
                .hasMessageContaining("no tar archive");
        assertThatThrownBy(() -> entries(new byte[] {1, 2, 3})).hasMessageContaining("middle of a header");
    }

    @Test
    void noDamageDoesMoreThanFail() {
        byte[] tar = new TarArchive()
                .pax('x', "path=abc", "size=4")
                .file("d/f", "content")
                .directory("d/", 0755)
                .symbolicLink("s", "t")
                .tar();
        Random random = new Random(1);
        for (int i = 0; i < 3000; i++) {
            byte[] damaged = Arrays.copyOf(tar, random.nextInt(tar.length + 1));
            for (int change = 0; change < 4 && damaged.length > 0; change++) {
                damaged[random.nextInt(damaged.length)] = (byte) random.nextInt();
            }
            for (int header = 0; header + 512 <= damaged.length; header += 512) {
                if (random.nextBoolean()) {
                    System.arraycopy(
                            TarArchive.checked(Arrays.copyOfRange(damaged, header, header + 512)),
                            0,
                            damaged,
                            header,
                            512);
                }
            }
            try {
                entries(damaged);
            } catch (IOException e) {
                assertThat(e).isInstanceOf(ArchiveException.class);
            }
        }
    }

    private static TarReader reader(byte[] tar) {
        return new TarReader(new ByteArrayInputStream(tar));
    }

    private static List<TarEntry> entries(byte[] tar) throws IOException {
        TarReader reader = reader(tar);
        List<TarEntry> entries = new ArrayList<>();
        for (Optional<TarEntry> entry = reader.next(); entry.isPresent(); entry = reader.next()) {
            entries.add(entry.get());
        }
        return entries;
    }

    private static String content(TarReader reader) throws IOException {
        ByteArrayOutputStream content = new ByteArrayOutputStream();
        byte[] buffer = new byte[3];
        for (int count = reader.read(buffer); count > 0; count = reader.read(buffer)) {
            content.write(buffer, 0, count);
        }
        return content.toString(UTF_8);
    }
}
