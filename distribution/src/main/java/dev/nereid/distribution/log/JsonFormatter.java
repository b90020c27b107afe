package dev.nereid.distribution.log;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.json.JsonWriteFeature;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.time.ZoneId;
import java.time.format.DateTimeFormatter;
import java.util.HashSet;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.slf4j.event.KeyValuePair;

/**
 * Formats events as JSON objects, one in each line, in ASCII. Immutable.
 *
 * <p>The data are members beside time, level, logger, thread and message. A member gets the prefix {@code data.} if its
 * key is taken, and so do further ones of a key.
 */
final class JsonFormatter implements LogFormatter {
    private static final Set<String> OWN = Set.of("time", "level", "logger", "thread", "message", "exception");

    private final JsonFactory json =
            JsonFactory.builder().enable(JsonWriteFeature.ESCAPE_NON_ASCII).build();
    private final DateTimeFormatter time = DateTimeFormatter.ISO_OFFSET_DATE_TIME.withZone(ZoneId.systemDefault());

    @Override
    public void append(StringBuilder lines, LogEvent event) {
        StringWriter text = new StringWriter();
        try (JsonGenerator object = json.createGenerator(text)) {
            object.writeStartObject();
            object.writeStringField("time", time.format(event.time()));
            object.writeStringField("level", event.level().name());
            object.writeStringField("logger", event.logger());
            object.writeStringField("thread", cut(event.thread(), LogEvent.MAX_VALUE_LENGTH));
            object.writeStringField("message", cut(event.text(), LogEvent.MAX_TEXT_LENGTH));
            Set<String> taken = new HashSet<>(OWN);
            for (KeyValuePair pair : event.data()) {
                String key = cut(pair.key, LogEvent.MAX_VALUE_LENGTH);
                while (!taken.add(key)) {
                    key = "data." + key;
                }
                object.writeFieldName(key);
                write(object, pair.value);
            }
            if (event.thrown() != null) {
                object.writeStringField("exception", event.trace());
            }
            object.writeEndObject();
        } catch (IOException e) {
            throw new UncheckedIOException(e); // a StringWriter throws none
        }
        lines.append(text.getBuffer()).append('\n');
    }

    private static void write(JsonGenerator object, @Nullable Object value) throws IOException {
        switch (value) {
            case Boolean truth -> object.writeBoolean(truth);
            case Integer number -> object.writeNumber(number);
            case Long number -> object.writeNumber(number);
            case null, default -> object.writeString(cut(LogText.of(value), LogEvent.MAX_VALUE_LENGTH));
        }
    }

    private static String cut(String text, int maxLength) {
        if (text.length() <= maxLength) {
            return text;
        }
        int end = Character.isHighSurrogate(text.charAt(maxLength - 1)) ? maxLength - 1 : maxLength;
        return text.substring(0, end) + "…";
    }
}
