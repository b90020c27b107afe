package dev.nereid.server.golden;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Struct;
import com.google.protobuf.util.JsonFormat;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/** The record of the reference server, beside this repository. */
final class Golden {
    private static final Path DIRECTORY = Path.of("..", "..", "shared", "golden");

    /**
     * A recorded case.
     *
     * @param number its number in the record
     * @param part the part of the record that it is in; empty if there is only one
     * @param title the subject of the case
     * @param request the request as text
     * @param response the response as text
     */
    record Case(int number, String part, String title, String request, String response) {
        @Override
        public String toString() {
            return number + " " + title;
        }
    }

    private Golden() {}

    /** Returns a file or directory of the record, and skips the test if there is none. */
    static Path path(String name) {
        Path path = DIRECTORY.resolve(name);
        assumeTrue(Files.exists(path), () -> "no recorded exchanges: " + path + " does not exist");
        return path;
    }

    /** Returns the directories of the recorded models. */
    static List<Path> models() {
        try (Stream<Path> directories = Files.list(path("models"))) {
            return directories.sorted().toList();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Returns the cases of a file whose request and response are text. */
    static List<Case> cases(String file, String responseMember) {
        try (Stream<String> lines = Files.lines(path(file))) {
            return lines.map(line -> parse(line, responseMember))
                    .filter(one -> !one.request().isEmpty())
                    .toList();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static Case parse(String line, String responseMember) {
        Struct.Builder members = Struct.newBuilder();
        try {
            JsonFormat.parser().merge(line, members);
        } catch (InvalidProtocolBufferException e) {
            throw new IllegalStateException("a line of the record is no JSON: " + line, e);
        }
        return new Case(
                (int) members.getFieldsOrThrow("n").getNumberValue(),
                text(members, "file"),
                text(members, "title"),
                text(members, "request"),
                text(members, responseMember));
    }

    private static String text(Struct.Builder members, String name) {
        return members.containsFields(name) ? members.getFieldsOrThrow(name).getStringValue() : "";
    }
}
