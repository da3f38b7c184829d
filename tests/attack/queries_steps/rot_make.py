import sys; sys.path.insert(0,'/tmp/attackq')
from h import *
d='/tmp/attackq/rot'; shutil.rmtree(d,ignore_errors=True); os.makedirs(d)
s=S(d+'/x.svcdb')
rng=random.Random(7)
W=['apple','war','peace','tolstoi','zebra','quince','müller','straße']+['w%d'%i for i in range(500)]
print(s.put('/.svc-config/indexes.json',{'glob':'**/*','indexes':[{'name':'t','type':['exact','trigram','fulltext','phonetic']},{'name':'n','type':'exact'},{'name':'long','type':['fulltext','trigram']},{'name':'@path','type':'exact'},{'name':'@filename','type':['exact','trigram']}]}))
N=12000
for k in range(0,N,1500):
    ops=[{'op':'put','path':f'/d{i%7}/f{i}.json','content':json.dumps({'t':' '.join(rng.choices(W,k=4)),'n':i,'long':' '.join(rng.choices(W,k=150)) if i%20==0 else 'short'}),'content_type':'application/json'} for i in range(k,k+1500)]
    r=s.q('POST','/files/batch',{'operations':ops}); print(r[0],time.strftime('%T'))
    s.query('/',[]); time.sleep(2)
# some deletes and overwrites
r=s.q('POST','/files/batch',{'operations':[{'op':'delete','path':f'/d{i%7}/f{i}.json'} for i in range(0,3000,10)]+[{'op':'put','path':f'/d{i%7}/f{i}.json','content':json.dumps({'t':'war again','n':i}),'content_type':'application/json'} for i in range(1,3000,10)]})
print(r[0])
for _ in range(60):
    st=s.q('GET','/query/status')[1]
    if not st['waiting'] and not st['jobs']: break
    time.sleep(1)
print({k:v for k,v in st.items() if k not in('directories',)})
QS=json.load(open('/tmp/attackq/qs.json'))
exp=[s.query(p,w,**k)[1] for p,w,k in QS]
json.dump(exp,open(d+'/exp.json','w'))
for q,e in zip(QS,exp): print(q[1],str(e)[:100])
time.sleep(3); print({k:v for k,v in s.q('GET','/query/status')[1].items() if k in('unflushed','waiting','jobs')})
s.stop()
os.rename(d+'/x.svcdb.d',d+'/gold.d'); shutil.copy(d+'/x.svcdb',d+'/gold')
