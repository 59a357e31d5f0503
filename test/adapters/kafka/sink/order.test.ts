/**
 * Goal: in a topic rows and their coverage are one transaction, and the source is told behind it; a window is given back
 * behind that. Method: the contract of order over the test cluster; test/real runs it over real brokers.
 */
import { kafkaOrder } from "../../../contract/kafka-order.ts";
import { orderContract } from "../../../contract/order-contract.ts";
import { pipelineOrderContract } from "../../../contract/pipeline-order.ts";
import { FakeSinkBench } from "./fake-bench.ts";

const make = () => Promise.resolve(new FakeSinkBench(9));
const clockOf = (bench: unknown) => (bench as FakeSinkBench).clock;

orderContract("topics of the test cluster", kafkaOrder(make, clockOf), true);

pipelineOrderContract("topics of the test cluster", make);
