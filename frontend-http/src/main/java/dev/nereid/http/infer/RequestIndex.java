package dev.nereid.http.infer;

import dev.nereid.http.body.RequestLimits;
import dev.nereid.http.json.JsonFields;
import dev.nereid.http.json.JsonReader;
import java.util.Arrays;

/**
 * Offsets of the parts of an inference request in its JSON text. Confined to the thread that reads the request.
 *
 * <p>One pass over the whole text finds members in any order. Of several members with one name, the first counts. The
 * pass checks the syntax, except for the numbers of an input's data, which are most of a text and are parsed later.
 */
final class RequestIndex {
    static final int NAME = 0;
    static final int DATATYPE = 1;
    static final int SHAPE = 2;
    static final int DATA = 3;
    static final int PARAMETERS = 4;
    private static final String[] INPUT_MEMBERS = {"name", "datatype", "shape", "data", "parameters"};

    private int id = JsonFields.ABSENT;
    private int parameters = JsonFields.ABSENT;
    private int inputs = JsonFields.ABSENT;
    private int outputs = JsonFields.ABSENT;
    private int inputCount;
    private int[] members = new int[2 * INPUT_MEMBERS.length];

    private RequestIndex() {}

    /** Creates the index of a whole text. */
    static RequestIndex of(JsonReader json) {
        RequestIndex index = new RequestIndex();
        json.begin();
        if (json.peek() == '{') {
            index.readRequest(json);
        } else {
            json.skipValue();
        }
        json.finish();
        return index;
    }

    int id() {
        return id;
    }

    int parameters() {
        return parameters;
    }

    int inputs() {
        return inputs;
    }

    int outputs() {
        return outputs;
    }

    int inputCount() {
        return inputCount;
    }

    /** Returns the offset of a member's value, for instance {@link #SHAPE}, of an input. */
    int member(int input, int member) {
        return members[input * INPUT_MEMBERS.length + member];
    }

    private void readRequest(JsonReader json) {
        for (boolean more = json.firstMember(); more; more = json.nextMember()) {
            int at = json.position();
            if (inputs == JsonFields.ABSENT && json.keyIs("inputs")) {
                inputs = at;
                readInputs(json);
                continue;
            }
            if (id == JsonFields.ABSENT && json.keyIs("id")) {
                id = at;
            } else if (parameters == JsonFields.ABSENT && json.keyIs("parameters")) {
                parameters = at;
            } else if (outputs == JsonFields.ABSENT && json.keyIs("outputs")) {
                outputs = at;
            }
            json.skipValue();
        }
    }

    private void readInputs(JsonReader json) {
        if (json.peek() != '[') {
            json.skipValue();
            return;
        }
        for (boolean more = json.firstElement(); more; more = json.nextElement()) {
            RequestLimits.checkCount("inputs", inputCount, RequestLimits.MAX_PARTS);
            int base = inputCount++ * INPUT_MEMBERS.length;
            if (base == members.length) {
                members = Arrays.copyOf(members, 2 * base);
            }
            Arrays.fill(members, base, base + INPUT_MEMBERS.length, JsonFields.ABSENT);
            if (json.peek() == '{') {
                readInput(json, base);
            } else {
                json.skipValue();
            }
        }
    }

    private void readInput(JsonReader json, int base) {
        for (boolean more = json.firstMember(); more; more = json.nextMember()) {
            int found = 0;
            while (found < INPUT_MEMBERS.length
                    && (members[base + found] != JsonFields.ABSENT || !json.keyIs(INPUT_MEMBERS[found]))) {
                found++;
            }
            if (found < INPUT_MEMBERS.length) {
                members[base + found] = json.position();
            }
            if (found != DATA || !json.skipNumbers()) {
                json.skipValue();
            }
        }
    }
}
