package dev.nereid.distribution.golden;

import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Struct;
import com.google.protobuf.util.JsonFormat;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/**
 * A recorded call of the reference server over gRPC. Immutable.
 *
 * @param file the part of the record
 * @param number the number within its part
 * @param title the purpose of the call
 * @param type the message's type, or the text of the record in its place
 * @param request the message as text
 * @param response the response as text: {@code OK}, the type and the message, or a status and its description
 */
record GoldenCase(String file, int number, String title, String type, String request, String response) {
    /** How long texts end in the record. */
    private static final String CUT = " characters in all>";

    /** Reads a part of the record. */
    static List<GoldenCase> read(Path record, String part) throws IOException {
        try (Stream<String> lines = Files.lines(record)) {
            return lines.map(GoldenCase::parse)
                    .filter(one -> one.file().equals(part))
                    .toList();
        }
    }

    /** Returns whether the record contains the complete request and response. */
    boolean isWhole() {
        return !request.endsWith(CUT) && !response.endsWith(CUT);
    }

    private static GoldenCase parse(String line) {
        Struct.Builder members = Struct.newBuilder();
        try {
            JsonFormat.parser().merge(line, members);
        } catch (InvalidProtocolBufferException e) {
            throw new IllegalStateException("a line of the record is no JSON: " + line, e);
        }
        String request = text(members, "request");
        int end = request.indexOf('\n');
        return new GoldenCase(
                text(members, "file"),
                (int) members.getFieldsOrThrow("n").getNumberValue(),
                text(members, "title"),
                end < 0 ? "" : request.substring(0, end),
                request.substring(end + 1),
                text(members, "response"));
    }

    private static String text(Struct.Builder members, String name) {
        return members.containsFields(name) ? members.getFieldsOrThrow(name).getStringValue() : "";
    }

    @Override
    public String toString() {
        return number + " " + title;
    }
}
