package dev.nereid.distribution.child;

import io.vertx.core.json.JsonObject;
import java.util.Map;
import java.util.TreeMap;

/**
 * The order of a parent process to its child, which is one line. Immutable.
 *
 * @param mark begins each message of the child, and nothing else that is written to its standard output
 * @param oneByOne whether models are loaded one after the other
 * @param refused the models that the child reports as invalid, with the reasons, in place of their completion or load
 * @param rest the reason to refuse all other models; empty to check them
 */
record CheckOrder(String mark, boolean oneByOne, Map<String, String> refused, String rest) {
    /** The messages of a child are JSON objects with one of these keys. */
    static final String BEGIN = "begin";

    static final String BACKEND = "backend";
    static final String WORK = "work";
    static final String END = "end";
    static final String NUMBER = "number";

    /** All models are checked, and the child waits for a line before it prints its report. */
    static final String CHECKED = "checked";

    /** The command has ended with this status: its report or its error is printed. */
    static final String ENDED = "ended";

    /** The line after which a child prints its report. */
    static final String PRINT = "print";

    /** The line after which a child ends without a report. */
    static final String SAY_NOTHING = "end";

    CheckOrder {
        refused = Map.copyOf(refused);
    }

    String line() {
        return new JsonObject()
                .put("mark", mark)
                .put("oneByOne", oneByOne)
                .put("refused", new JsonObject(Map.copyOf(refused)))
                .put("rest", rest)
                .encode();
    }

    static CheckOrder of(String line) {
        JsonObject json = new JsonObject(line);
        Map<String, String> refused = new TreeMap<>();
        json.getJsonObject("refused").forEach(entry -> refused.put(entry.getKey(), String.valueOf(entry.getValue())));
        return new CheckOrder(json.getString("mark"), json.getBoolean("oneByOne"), refused, json.getString("rest"));
    }
}
