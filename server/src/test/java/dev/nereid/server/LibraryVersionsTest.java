package dev.nereid.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.RuntimeVersion;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** Tests what a program with an older protobuf sees at the start of a server. */
final class LibraryVersionsTest {
    private static final String RUNTIME =
            RuntimeVersion.MAJOR + "." + RuntimeVersion.MINOR + "." + RuntimeVersion.PATCH;

    @Test
    void acceptsTheVersionOfTheBuild() {
        assertThatCode(LibraryVersions::check).doesNotThrowAnyException();
    }

    /** Programs get the versions of the build by the BOM. */
    @Test
    void areThoseOfTheBom() throws IOException {
        String bom = Files.readString(Path.of("../authors/bom/pom.xml"));
        String build = Files.readString(Path.of("../pom.xml"));

        assertThat(version("protobuf", bom))
                .isEqualTo(version("protobuf", build))
                .isEqualTo(RUNTIME);
        assertThat(version("grpc", bom)).isEqualTo(version("grpc", build));
    }

    private static String version(String library, String pom) {
        Matcher found = Pattern.compile("<" + library + "\\.version>(.+)</").matcher(pom);
        assertThat(found.find()).isTrue();
        return found.group(1);
    }

    @Test
    void namesBothVersions() {
        int newer = RuntimeVersion.MINOR + 1;

        assertThatThrownBy(() -> LibraryVersions.check(() -> {
                    try {
                        RuntimeVersion.validateProtobufGencodeVersion(
                                RuntimeVersion.RuntimeDomain.PUBLIC, RuntimeVersion.MAJOR, newer, 0, "", "Generated");
                        return "";
                    } catch (RuntimeException e) { // as by the initializer of a generated class
                        throw new ExceptionInInitializerError(e);
                    }
                }))
                .isInstanceOf(IllegalStateException.class)
                .hasMessage("protobuf-java: " + RUNTIME + " (expected: " + RuntimeVersion.MAJOR + "." + newer
                        + ".0 or later; import nereid-bom before other BOMs, or set the version)");
    }

    @Test
    void namesAVersionWithoutTheCheckOfVersions() {
        NoClassDefFoundError missing = new NoClassDefFoundError("com/google/protobuf/RuntimeVersion$RuntimeDomain");

        assertThatThrownBy(() -> LibraryVersions.check(() -> {
                    throw missing;
                }))
                .hasMessage("protobuf-java: absent, or older than 4.26 (expected: that of nereid-bom; import nereid-bom"
                        + " before other BOMs, or set the version): " + missing)
                .hasCause(missing);
    }
}
