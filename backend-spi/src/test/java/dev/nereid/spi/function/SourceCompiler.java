package dev.nereid.spi.function;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.BackendProvider;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.ServiceLoader;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.tools.Diagnostic;
import javax.tools.DiagnosticCollector;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;

/** Compiles sources of functions into one directory, as the build of a plugin does. Confined to the test's thread. */
final class SourceCompiler {
    private static final String IMPORTS =
            "import dev.nereid.spi.*; import dev.nereid.spi.function.*;" + " import java.util.concurrent.*;\n";
    private static final Pattern TYPE = Pattern.compile("(?:class|interface|@interface|record|enum) (\\w+)");

    private final Path classes;
    private List<String> options = List.of("-proc:full");

    SourceCompiler(Path classes) {
        this.classes = classes;
    }

    /** Replaces the options of annotation processing. */
    SourceCompiler with(String... processing) {
        options = List.of(processing);
        return this;
    }

    /** Returns the classes of the SPI, which have the processor. */
    static Path spi() {
        try {
            return Path.of(BackendProvider.class
                    .getProtectionDomain()
                    .getCodeSource()
                    .getLocation()
                    .toURI());
        } catch (URISyntaxException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Compiles sources and returns the errors, each with its line. */
    List<String> errors(String... sources) {
        return diagnostics(Diagnostic.Kind.ERROR, sources);
    }

    /** Compiles sources that have no errors and returns the warnings, each with its line. */
    List<String> warnings(String... sources) {
        return diagnostics(Diagnostic.Kind.WARNING, sources);
    }

    private List<String> diagnostics(Diagnostic.Kind kind, String... sources) {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        DiagnosticCollector<JavaFileObject> problems = new DiagnosticCollector<>();
        try (StandardJavaFileManager files =
                compiler.getStandardFileManager(problems, Locale.ROOT, StandardCharsets.UTF_8)) {
            List<String> arguments = new ArrayList<>(options);
            arguments.addAll(List.of("-cp", spi() + ":" + classes, "-d", classes.toString()));
            List<Source> units = Stream.of(sources).map(Source::new).toList();
            boolean ok = compiler.getTask(null, files, problems, arguments, null, units)
                    .call();
            assertThat(problems.getDiagnostics().stream()
                            .noneMatch(problem -> problem.getKind() == Diagnostic.Kind.ERROR))
                    .as("%s", problems.getDiagnostics())
                    .isEqualTo(ok);
            return problems.getDiagnostics().stream()
                    .filter(problem -> problem.getKind() == kind)
                    .map(problem -> problem.getLineNumber() + ": " + problem.getMessage(Locale.ROOT))
                    .toList();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Compiles sources that have no errors. */
    SourceCompiler compile(String... sources) {
        assertThat(errors(sources)).isEmpty();
        return this;
    }

    /** Returns the file in which a plugin names its providers. */
    Path serviceFile() {
        return classes.resolve("META-INF/services/dev.nereid.spi.BackendProvider");
    }

    /** Returns the names in the service file, without comments. */
    List<String> named() throws IOException {
        return Files.readAllLines(serviceFile()).stream()
                .filter(line -> !line.startsWith("#"))
                .toList();
    }

    /** Loads the providers as a server does. */
    List<BackendProvider> providers() throws IOException {
        URLClassLoader loader = new URLClassLoader(
                new URL[] {classes.toUri().toURL()}, getClass().getClassLoader());
        return ServiceLoader.load(BackendProvider.class, loader).stream()
                .map(ServiceLoader.Provider::get)
                .filter(provider -> provider.getClass().getClassLoader().equals(loader))
                .toList();
    }

    private static final class Source extends SimpleJavaFileObject {
        private final String text;

        Source(String text) {
            super(URI.create("string:///" + name(text) + ".java"), Kind.SOURCE);
            this.text = text;
        }

        private static String name(String text) {
            Matcher type = TYPE.matcher(text);
            assertThat(type.find()).as(text).isTrue();
            return type.group(1);
        }

        @Override
        public CharSequence getCharContent(boolean ignoreEncodingErrors) {
            int end = text.startsWith("package ") ? text.indexOf('\n') : 0;
            return text.substring(0, end) + IMPORTS + text.substring(end);
        }
    }
}
